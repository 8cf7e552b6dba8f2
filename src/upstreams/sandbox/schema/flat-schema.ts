import type { JsonObject, JsonValue } from "../../../domain/json.ts";

/** A JSON Schema in which $ref and allOf are resolved. "$choices" is a list of its lists of alternatives. */
export type FlatSchema = JsonObject;

/** References and compositions that lead from one schema to its flat form. */
const MAX_STEPS = 64;

/** The merged values of the keywords that two schemas have in common, both of which must match. */
const MERGES: { readonly [keyword: string]: (one: JsonValue, other: JsonValue) => JsonValue } = {
  required: (one, other) => [...new Set([...listOf(one), ...listOf(other)])],
  properties: mergeProperties,
  $choices: (one, other) => [...listOf(one), ...listOf(other)],
  items: (one, other) => ({ allOf: [one, other] }),
  additionalProperties: (one, other) => (one === false || other === false ? false : { allOf: [one, other] }),
  enum: (one, other) => {
    const others = new Set(listOf(other).map((value) => JSON.stringify(value)));
    return listOf(one).filter((value) => others.has(JSON.stringify(value)));
  },
  type: (one, other) => typesOf(one).filter((type) => mayBe(type, typesOf(other))),
  minimum: largest,
  exclusiveMinimum: largest,
  minLength: largest,
  minItems: largest,
  minProperties: largest,
  maximum: smallest,
  exclusiveMaximum: smallest,
  maxLength: smallest,
  maxItems: smallest,
};

/** Resolves the references within one document. */
export class SchemaReader {
  readonly #root: JsonValue;
  readonly #work: WorkBudget;
  readonly #flat = new WeakMap<object, FlatSchema>();

  constructor(root: JsonValue, work: WorkBudget) {
    this.#root = root;
    this.#work = work;
  }

  flatten(schema: JsonValue): FlatSchema {
    if (!isObject(schema)) return {};
    let flat = this.#flat.get(schema);
    if (!flat) {
      flat = this.#flatten(schema, { steps: 0 });
      this.#flat.set(schema, flat);
    }
    return flat;
  }

  /** A schema that matches what both match. */
  merge(one: FlatSchema, other: JsonValue): FlatSchema {
    return this.#merged(one, this.flatten(other));
  }

  #flatten(schema: JsonValue, budget: { steps: number }): FlatSchema {
    if (!isObject(schema) || budget.steps++ > MAX_STEPS) return {};
    const { $ref, allOf, anyOf, oneOf, if: condition, then, ...own } = schema;
    let flat: FlatSchema = own;
    for (const choice of [anyOf, oneOf]) {
      if (Array.isArray(choice) && choice.length > 0) flat = this.#merged(flat, { $choices: [choice] });
    }
    const parts = [
      ...(Array.isArray(allOf) ? allOf : []),
      ...(condition === undefined ? [] : [condition, then ?? {}]),
    ];
    if (typeof $ref === "string") parts.push(this.#resolve($ref));
    for (const part of parts) flat = this.#merged(flat, this.#flatten(part, budget));
    return flat;
  }

  /** A schema beyond the budget matches anything. */
  #merged(one: FlatSchema, other: FlatSchema): FlatSchema {
    return this.#work.spend(sizeOf(one) + sizeOf(other)) ? merged(one, other) : {};
  }

  /** Only references within the document are known. */
  #resolve(ref: string): JsonValue {
    if (!ref.startsWith("#")) return {};
    let value: JsonValue | undefined = this.#root;
    for (const part of ref.slice(1).split("/").slice(1, MAX_STEPS)) {
      const name = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(value)) value = value[Number(name)];
      else value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    }
    return value ?? {};
  }
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

export function typesOf(type: JsonValue | undefined): readonly JsonValue[] {
  return typeof type === "string" ? [type] : listOf(type);
}

/** Roughly the work to merge a schema. */
function sizeOf({ properties, required, enum: values }: FlatSchema): number {
  const names = isObject(properties) ? Object.keys(properties).length : 0;
  return 1 + 3 * names + listOf(required).length + 4 * listOf(values).length;
}

function merged(one: FlatSchema, other: FlatSchema): FlatSchema {
  const result: { [keyword: string]: JsonValue } = { ...one };
  for (const [keyword, value] of Object.entries(other)) {
    const earlier = Object.hasOwn(result, keyword) ? result[keyword] : undefined;
    const merge = Object.hasOwn(MERGES, keyword) ? MERGES[keyword] : undefined;
    result[keyword] = earlier !== undefined && merge ? merge(earlier, value) : value;
  }
  return result;
}

function mergeProperties(one: JsonValue, other: JsonValue): JsonValue {
  if (!isObject(one) || !isObject(other)) return isObject(one) ? one : other;
  const result = new Map(Object.entries(one));
  for (const [name, schema] of Object.entries(other)) {
    const earlier = result.get(name);
    result.set(name, earlier === undefined ? schema : { allOf: [earlier, schema] });
  }
  return Object.fromEntries(result);
}

function mayBe(type: JsonValue, types: readonly JsonValue[]): boolean {
  return types.includes(type) || (type === "integer" && types.includes("number"));
}

function largest(one: JsonValue, other: JsonValue): JsonValue {
  return typeof one === "number" && typeof other === "number" ? Math.max(one, other) : other;
}

function smallest(one: JsonValue, other: JsonValue): JsonValue {
  return typeof one === "number" && typeof other === "number" ? Math.min(one, other) : other;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

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

/** Limits the work for one schema, which a caller wrote. */
export class WorkBudget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  /** Returns false if the work exceeds the budget. */
  spend(units: number): boolean {
    this.#left -= units;
    return this.#left >= 0;
  }
}
