import type { JsonValue } from "../../../domain/json.ts";
import { type FlatSchema, isObject, listOf, type SchemaReader, typesOf } from "./flat-schema.ts";
import { WorkBudget } from "./work-budget.ts";

const MAX_WORK = 20_000;
const MAX_BRANCHES = 64;

/**
 * How many levels the flattest instance of a schema has. A recursive schema ends in its flattest alternative, and
 * an optional part adds no level.
 */
export class SchemaHeights {
  readonly #reader: SchemaReader;
  readonly #known = new Map<object, Map<number, number>>();
  readonly #work = new WorkBudget(MAX_WORK);

  constructor(reader: SchemaReader) {
    this.#reader = reader;
  }

  /** Infinity if there are more levels than `limit`. */
  heightOf(schema: JsonValue, limit: number): number {
    if (!isObject(schema)) return 0;
    if (limit < 0 || !this.#work.spend(1)) return Number.POSITIVE_INFINITY;
    let known = this.#known.get(schema);
    if (!known) {
      known = new Map();
      this.#known.set(schema, known);
    }
    let height = known.get(limit);
    if (height === undefined) {
      height = this.#compute(schema, limit);
      known.set(limit, height);
    }
    return height;
  }

  #compute(schema: JsonValue, limit: number): number {
    const flat = this.#reader.flatten(schema);
    if (flat.const !== undefined || flat.enum !== undefined || typesOf(flat.type).includes("null")) return 0;
    let height = 0;
    for (const part of requiredParts(flat)) {
      height = Math.max(height, 1 + this.heightOf(part, limit - 1));
      if (height > limit) return Number.POSITIVE_INFINITY;
    }
    for (const choice of listOf(flat.$choices)) {
      height = Math.max(height, this.#lowestOf(listOf(choice), limit - 1));
    }
    return height;
  }

  #lowestOf(branches: readonly JsonValue[], limit: number): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (const branch of branches.slice(0, MAX_BRANCHES)) {
      if (lowest > 0) lowest = Math.min(lowest, this.heightOf(branch, limit));
    }
    return lowest;
  }
}

/** The schemas of the properties and items that every instance has. */
function* requiredParts(flat: FlatSchema): Generator<JsonValue, void, undefined> {
  const properties = isObject(flat.properties) ? flat.properties : {};
  for (const name of listOf(flat.required)) {
    if (typeof name === "string" && Object.hasOwn(properties, name)) yield properties[name] ?? {};
  }
  if (typeof flat.minItems === "number" && flat.minItems > 0) yield flat.items ?? {};
  yield* listOf(flat.prefixItems);
}
