import type { JsonObject, JsonValue } from "../../domain/json.ts";
import { textOfPattern } from "./pattern-text.ts";

/** Levels that have optional properties and items. */
const FULL_LEVELS = 3;
/** Beyond this many levels, values are null even if their schema forbids that. */
const MAX_LEVELS = 24;
/** A value is one unit, or more if it, its pattern or its schema is large. Beyond the budget, values are null as well. */
const MAX_WORK = 10_000;
const CHARACTERS_PER_UNIT = 8;
const MAX_OPTIONAL = 100;
const MAX_ITEMS = 1_000;
const MAX_CHOICES = 64;
/** References and compositions that lead from one schema to its flat form. */
const MAX_STEPS = 64;
const MAX_CHARACTERS = 10_000;
const USUAL_KEYWORDS = 8;
const MAX_REFERENCE = 1_000;

/** Limits the work for one reply, which can have several values. */
export class WorkBudget {
  #left = MAX_WORK;

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** Returns false if the work exceeds the budget. */
  spend(units: number): boolean {
    this.#left -= units;
    return this.#left >= 0;
  }
}

/** A schema whose references and compositions are resolved. */
type FlatSchema = JsonObject;

/**
 * A value that matches a JSON Schema: always the same one. It knows the keywords that structured output allows, and "allOf" and
 * "prefixItems", which libraries create; others are ignored. Time and size are bounded for every schema; a schema beyond the
 * bounds gets a value that may not match.
 */
export function valueOfSchema(schema: JsonObject, work = new WorkBudget()): JsonValue {
  return new ValueMaker(schema, work).valueOf(schema, { name: "text", level: 0, variant: 0 });
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Place = {
  /** Of the property. Texts contain it. */
  readonly name: string;
  readonly level: number;
  /** Different variants differ, if the schema allows that: lists may require different items. */
  readonly variant: number;
};

class ValueMaker {
  readonly #root: JsonObject;
  readonly #work: WorkBudget;
  readonly #heights = new Map<JsonObject, number>();

  constructor(root: JsonObject, work: WorkBudget) {
    this.#root = root;
    this.#work = work;
  }

  valueOf(schema: JsonValue, place: Place): JsonValue {
    const { level, variant } = place;
    if (level > MAX_LEVELS || !this.#work.spend(1)) return null;
    const flat = this.#flatten(schema, (branches) => this.#branchOf(branches, place));
    if (flat.const !== undefined) return this.#ifSmall(flat.const);
    const values = listOf(flat.enum);
    if (values.length > 0) return this.#ifSmall(values[variant % values.length] ?? null);
    switch (typeOf(flat, level)) {
      case "object":
        return this.#objectOf(flat, place);
      case "array":
        return this.#listOf(flat, place);
      case "number":
        return numberFor(flat, variant);
      case "integer":
        return multipleFor(flat, Math.ceil(multipleOf(flat) ?? 1), variant);
      case "boolean":
        return variant % 2 === 0;
      case "null":
        return null;
      default:
        return this.#textOf(flat, place);
    }
  }

  /** Resolves references within the document, and merges all that must match, with one branch of each choice. */
  #flatten(schema: JsonValue, choose: (branches: readonly JsonValue[]) => JsonValue, steps = { left: MAX_STEPS }): FlatSchema {
    if (!isObject(schema) || steps.left-- <= 0 || !this.#spendOn(schema)) return {};
    const { $ref, allOf, anyOf, oneOf, ...own } = schema;
    const parts = [...listOf(allOf)];
    if (typeof $ref === "string") parts.push(this.#resolve($ref));
    for (const choice of [anyOf, oneOf]) if (listOf(choice).length > 0) parts.push(choose(listOf(choice)));
    let flat: FlatSchema = own;
    for (const part of parts.slice(0, MAX_STEPS)) {
      const other = this.#flatten(part, choose, steps);
      if (!this.#spendOn(flat)) return {};
      flat = merged(flat, other);
    }
    return flat;
  }

  /** Pays for a copy of a schema. */
  #spendOn(schema: JsonObject): boolean {
    if (this.#work.isSpent) return false;
    const { properties, required } = schema;
    const names = isObject(properties) ? Object.keys(properties).length : 0;
    const keywords = Math.max(0, Object.keys(schema).length - USUAL_KEYWORDS);
    return this.#work.spend(1 + names + listOf(required).length + keywords);
  }

  #resolve(ref: string): JsonValue {
    if (!ref.startsWith("#") || ref.length > MAX_REFERENCE) return {};
    let value: JsonValue | undefined = this.#root;
    for (const part of ref.slice(1).split("/").slice(1, MAX_STEPS)) {
      const name = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(value)) value = value[Number(name)];
      else value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    }
    return value ?? {};
  }

  /** The first branch, or at a deep level the one that ends soonest. */
  #branchOf(branches: readonly JsonValue[], { level, variant }: Place): JsonValue {
    const finite = branches.slice(0, MAX_CHOICES).filter((branch) => this.#isPossible(branch));
    return level < FULL_LEVELS ? (finite[variant % finite.length] ?? {}) : this.#lowestOf(finite);
  }

  #lowestOf(branches: readonly JsonValue[]): JsonValue {
    const heights = branches.slice(0, MAX_CHOICES).map((branch) => this.#heightOf(branch));
    return branches[heights.indexOf(Math.min(...heights))] ?? {};
  }

  /** False for a schema whose values have no end, or that nothing matches. */
  #isPossible(schema: JsonValue): boolean {
    return schema !== false && Number.isFinite(this.#heightOf(schema));
  }

  /** How many levels the flattest value has. A schema within itself counts as one without an end. */
  #heightOf(schema: JsonValue, level = 0): number {
    if (!isObject(schema)) return 0;
    const known = this.#heights.get(schema);
    if (known !== undefined) return known;
    if (level > MAX_LEVELS || this.#work.isSpent) return Number.POSITIVE_INFINITY;
    this.#heights.set(schema, Number.POSITIVE_INFINITY);
    const flat = this.#flatten(schema, (branches) => this.#lowestOf(branches));
    const parts = isLeaf(flat) ? [] : requiredParts(flat);
    let height = 0;
    for (const part of parts) height = Math.max(height, 1 + this.#heightOf(part, level + 1));
    this.#heights.set(schema, height);
    return height;
  }

  #objectOf(flat: FlatSchema, { level, variant }: Place): JsonValue {
    const properties = isObject(flat.properties) ? flat.properties : {};
    const names = new Set(namesIn(flat.required));
    if (level < FULL_LEVELS) {
      for (const name of Object.keys(properties).slice(0, MAX_OPTIONAL)) {
        if (this.#isPossible(properties[name] ?? {})) names.add(name);
      }
    }
    const characters = [...names].reduce((sum, name) => sum + name.length, 0);
    if (!this.#work.spend(names.size + characters / CHARACTERS_PER_UNIT)) return {};
    const entries = [...names].map((name) => {
      const schema = Object.hasOwn(properties, name) ? properties[name] : flat.additionalProperties;
      return [name, this.valueOf(schema ?? {}, { name, level: level + 1, variant })] as const;
    });
    return Object.fromEntries(entries);
  }

  #listOf(flat: FlatSchema, { name, level, variant }: Place): JsonValue {
    const first = listOf(flat.prefixItems);
    const others = flat.items ?? {};
    const usual = level < FULL_LEVELS && this.#isPossible(others) ? 1 : 0;
    const wanted = Math.max(first.length, usual, numberIn(flat.minItems) ?? 0);
    const count = Math.min(wanted, numberIn(flat.maxItems) ?? MAX_ITEMS, MAX_ITEMS);
    return Array.from({ length: Math.max(0, count) }, (_, i) =>
      this.valueOf(first[i] ?? others, { name, level: level + 1, variant: variant + i }),
    );
  }

  #textOf(flat: FlatSchema, { name, variant }: Place): JsonValue {
    const length = typeof flat.pattern === "string" ? flat.pattern.length : 0;
    return this.#work.spend(length) ? this.#ifSmall(textFor(flat, name, variant)) : null;
  }

  #ifSmall(value: JsonValue): JsonValue {
    const isScalar = typeof value !== "string" && typeof value !== "object";
    return isScalar || this.#work.spend(JSON.stringify(value).length / CHARACTERS_PER_UNIT) ? value : null;
  }
}

/** Keywords of the second schema replace those of the first, except that properties and their names are united. */
function merged(one: FlatSchema, other: FlatSchema): FlatSchema {
  const both = { ...one, ...other };
  if (isObject(one.properties) && isObject(other.properties)) {
    return {
      ...both,
      properties: { ...one.properties, ...other.properties },
      required: [...namesIn(one.required), ...namesIn(other.required)],
    };
  }
  return { ...both, required: [...namesIn(one.required), ...namesIn(other.required)] };
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function namesIn(required: JsonValue | undefined): readonly string[] {
  return listOf(required).filter((name) => typeof name === "string");
}

function numberIn(value: JsonValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function typesOf({ type }: FlatSchema): readonly JsonValue[] {
  return typeof type === "string" ? [type] : listOf(type);
}

function typeOf(flat: FlatSchema, level: number): JsonValue | undefined {
  const types = typesOf(flat);
  if (types.includes("null") && level > FULL_LEVELS) return "null";
  const given = types.find((type) => type !== "null") ?? types[0];
  if (given !== undefined) return given;
  if (flat.properties !== undefined || namesIn(flat.required).length > 0) return "object";
  if (flat.items !== undefined || flat.prefixItems !== undefined) return "array";
  return flat.minimum === undefined && flat.maximum === undefined ? "string" : "number";
}

function isLeaf(flat: FlatSchema): boolean {
  return flat.const !== undefined || flat.enum !== undefined || typesOf(flat).includes("null");
}

function requiredParts(flat: FlatSchema): JsonValue[] {
  const properties = isObject(flat.properties) ? flat.properties : {};
  const parts = namesIn(flat.required).flatMap((name) => (Object.hasOwn(properties, name) ? [properties[name] ?? {}] : []));
  const items = (numberIn(flat.minItems) ?? 0) > 0 ? [flat.items ?? {}] : [];
  return [...parts, ...items, ...listOf(flat.prefixItems)];
}

function multipleOf(flat: FlatSchema): number | undefined {
  const value = numberIn(flat.multipleOf);
  return value !== undefined && value > 0 ? value : undefined;
}

/** A small number within the bounds, also if those are exclusive. */
function numberFor(flat: FlatSchema, variant: number): number {
  const step = multipleOf(flat);
  if (step !== undefined) return multipleFor(flat, step, variant);
  const low = Math.max(numberIn(flat.minimum) ?? -Infinity, numberIn(flat.exclusiveMinimum) ?? -Infinity);
  const high = Math.min(numberIn(flat.maximum) ?? Infinity, numberIn(flat.exclusiveMaximum) ?? Infinity);
  const usual = variant + 1.5;
  if (low < usual && usual < high) return usual;
  if (Number.isFinite(low) && Number.isFinite(high)) return Number((low / 2 + high / 2).toPrecision(15));
  return finite(Number.isFinite(low) ? low + usual : high - usual);
}

/** The same for a multiple: of 1 if it is an integer. */
function multipleFor(flat: FlatSchema, step: number, variant: number): number {
  const low = Math.max(
    Math.ceil((numberIn(flat.minimum) ?? -Infinity) / step),
    Math.floor((numberIn(flat.exclusiveMinimum) ?? -Infinity) / step) + 1,
  );
  const high = Math.min(
    Math.floor((numberIn(flat.maximum) ?? Infinity) / step),
    Math.ceil((numberIn(flat.exclusiveMaximum) ?? Infinity) / step) - 1,
  );
  const first = low <= 1 && high >= 1 ? 1 : low > 1 ? low : high;
  const varied = first === high ? first - variant : first + variant;
  return finite(Number((Math.min(Math.max(varied, low), high) * step).toPrecision(15)));
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

/** Texts of each format; the number makes them differ. */
const FORMATS: { readonly [format: string]: (variant: number) => string } = {
  "date-time": (variant) => `2026-01-${day(variant)}T12:00:00Z`,
  date: (variant) => `2026-01-${day(variant)}`,
  time: (variant) => `12:00:${day(variant)}Z`,
  duration: (variant) => `P${variant + 1}D`,
  email: (variant) => `user${variant}@example.com`,
  hostname: (variant) => `host${variant}.example.com`,
  ipv4: (variant) => `192.0.2.${1 + (variant % 250)}`,
  ipv6: (variant) => `2001:db8::${(1 + (variant % 65_000)).toString(16)}`,
  uri: (variant) => `https://example.com/${variant}`,
  uuid: (variant) => `00000000-0000-4000-8000-${String(variant).padStart(12, "0")}`,
};

function day(variant: number): string {
  return String(1 + (variant % 28)).padStart(2, "0");
}

function textFor({ format, pattern, minLength, maxLength }: FlatSchema, name: string, variant: number): string {
  if (typeof format === "string" && Object.hasOwn(FORMATS, format)) return FORMATS[format]?.(variant) ?? "";
  const min = Math.min(numberIn(minLength) ?? 0, MAX_CHARACTERS);
  if (typeof pattern === "string") {
    const text = textOfPattern(pattern, { variant, repeats: 0 });
    return text.length >= min ? text : textOfPattern(pattern, { variant, repeats: min - text.length });
  }
  const text = `${name.slice(0, MAX_STEPS).replaceAll("_", " ")} ${variant + 1}`;
  const max = Math.max(0, Math.min(numberIn(maxLength) ?? MAX_CHARACTERS, MAX_CHARACTERS));
  // The end differs, so it stays.
  return (max === 0 ? "" : text.slice(-max)).padEnd(min, " text");
}
