import type { JsonObject, JsonValue } from "../../../domain/json.ts";
import {
  type FlatSchema,
  isObject,
  listOf,
  SchemaHeights,
  SchemaReader,
  typesOf,
  WorkBudget,
} from "./flat-schema.ts";
import { textOfPattern } from "./pattern-text.ts";

/** Levels that have optional properties and items. */
const FULL_LEVELS = 3;
/** Beyond this many levels, values are null even if their schema forbids that. */
const MAX_LEVELS = 24;
/** A value is one unit, or more if it or its pattern is long. Beyond the budget, values are null as well. */
const MAX_WORK = 20_000;
const CHARACTERS_PER_UNIT = 8;
const MAX_OPTIONAL = 100;
const MAX_ITEMS = 1_000;
const MAX_CHOICES = 64;

const KEYWORDS_OF_TYPES: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ["object", ["properties", "required", "additionalProperties", "minProperties"]],
  ["array", ["items", "prefixItems", "minItems", "contains"]],
  ["number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]],
];

/** The budget of one reply, which can have several instances. */
export function instanceWork(): WorkBudget {
  return new WorkBudget(MAX_WORK);
}

/**
 * A value that matches a JSON Schema: always the same one. Keywords that would need a search, such as "not", are
 * ignored. Time and size are bounded for every schema; a schema beyond the bounds gets a value that may not match.
 */
export function instanceOf(
  schema: JsonObject,
  { type, work = instanceWork() }: { readonly type?: "object"; readonly work?: WorkBudget } = {},
): JsonValue {
  const value = new InstanceMaker(schema, work).valueOf(schema, 0, 0);
  return type === "object" && !isObject(value) ? {} : value;
}

class InstanceMaker {
  readonly #reader: SchemaReader;
  readonly #heights: SchemaHeights;
  readonly #work: WorkBudget;

  constructor(root: JsonObject, work: WorkBudget) {
    this.#work = work;
    this.#reader = new SchemaReader(root, work);
    this.#heights = new SchemaHeights(this.#reader);
  }

  /** Different variants differ, if the schema allows that: lists may require different items. */
  valueOf(schema: JsonValue, level: number, variant: number): JsonValue {
    if (level > MAX_LEVELS || !this.#work.spend(1)) return null;
    let flat = this.#reader.flatten(schema);
    for (let chosen = 0; flat.$choices !== undefined && chosen < MAX_CHOICES; chosen++) {
      const { $choices, ...rest } = flat;
      flat = rest;
      for (const choice of listOf($choices)) {
        flat = this.#reader.merge(flat, this.#branchOf(listOf(choice), level, variant));
      }
    }
    if (flat.const !== undefined) return this.#ifSmall(flat.const);
    const values = listOf(flat.enum);
    if (values.length > 0) return this.#ifSmall(values[variant % values.length] ?? null);
    switch (this.#typeOf(flat, level)) {
      case "object":
        return this.#objectOf(flat, level, variant);
      case "array":
        return this.#listOf(flat, level, variant);
      case "number":
        return numberFor(flat, false, variant);
      case "integer":
        return numberFor(flat, true, variant);
      case "boolean":
        return variant % 2 === 0;
      case "null":
        return null;
      default:
        return this.#textOf(flat, variant);
    }
  }

  #textOf(flat: FlatSchema, variant: number): JsonValue {
    const { pattern } = flat;
    if (typeof pattern === "string" && !this.#work.spend(pattern.length)) return null;
    return this.#ifSmall(textFor(flat, variant));
  }

  #ifSmall(value: JsonValue): JsonValue {
    const isScalar = typeof value !== "string" && typeof value !== "object";
    return isScalar || this.#work.spend(JSON.stringify(value).length / CHARACTERS_PER_UNIT) ? value : null;
  }

  /** The first branch, or at a deep level the one that ends soonest. */
  #branchOf(branches: readonly JsonValue[], level: number, variant: number): JsonValue {
    const limit = MAX_LEVELS - level;
    const possible = branches.slice(0, MAX_CHOICES).filter((branch) => branch !== false);
    const heights = possible.map((branch) => this.#heights.heightOf(branch, limit));
    const finite = possible.filter((_, i) => Number.isFinite(heights[i]));
    if (level < FULL_LEVELS && finite.length > 0) return finite[variant % finite.length] ?? {};
    return possible[heights.indexOf(Math.min(...heights))] ?? {};
  }

  #typeOf(flat: FlatSchema, level: number): JsonValue | undefined {
    const types = typesOf(flat.type);
    if (types.includes("null") && level > FULL_LEVELS) return "null";
    const given = types.find((type) => type !== "null") ?? types[0];
    if (given !== undefined) return given;
    return KEYWORDS_OF_TYPES.find(([, keywords]) => keywords.some((name) => Object.hasOwn(flat, name)))?.[0];
  }

  #objectOf(flat: FlatSchema, level: number, variant: number): JsonValue {
    const properties = isObject(flat.properties) ? flat.properties : {};
    const names = new Set(listOf(flat.required).filter((name) => typeof name === "string"));
    if (level < FULL_LEVELS) {
      for (const name of Object.keys(properties).slice(0, MAX_OPTIONAL)) {
        if (this.#isPossible(properties[name] ?? {}, level)) names.add(name);
      }
    }
    const others = flat.additionalProperties ?? {};
    if (others !== false) {
      const min = Math.min(Number(flat.minProperties ?? 0), MAX_ITEMS);
      for (let extra = 1; names.size < min; extra++) names.add(`extra_${extra}`);
    }
    const characters = [...names].reduce((sum, name) => sum + name.length, 0);
    if (!this.#work.spend(names.size + characters / CHARACTERS_PER_UNIT)) return {};
    const entries = [...names].map((name) => {
      const schema = Object.hasOwn(properties, name) ? properties[name] : others;
      return [name, this.valueOf(schema ?? {}, level + 1, variant)] as const;
    });
    return Object.fromEntries(entries);
  }

  /** An optional part may be left out if it has no end. */
  #isPossible(schema: JsonValue, level: number): boolean {
    return schema !== false && Number.isFinite(this.#heights.heightOf(schema, MAX_LEVELS - level - 1));
  }

  #listOf(flat: FlatSchema, level: number, variant: number): JsonValue {
    const first = [...listOf(flat.prefixItems), ...listOf(flat.items)].slice(0, MAX_ITEMS);
    if (flat.contains !== undefined) first.push(flat.contains);
    const others = Array.isArray(flat.items) ? {} : (flat.items ?? {});
    const usual = level < FULL_LEVELS && this.#isPossible(others, level) ? 1 : 0;
    const wanted = Math.max(first.length, usual, Number(flat.minItems ?? 0));
    const count = Math.min(wanted, Number(flat.maxItems ?? MAX_ITEMS), MAX_ITEMS);
    return Array.from({ length: Math.max(0, Math.trunc(count) || 0) }, (_, i) =>
      this.valueOf(first[i] ?? others, level + 1, variant + i),
    );
  }
}

type Bound = { readonly value: number; readonly isExclusive: boolean };

/** A number within the bounds of a schema, at or close to the lower one. */
function numberFor(schema: FlatSchema, isInteger: boolean, variant: number): number {
  const lower = boundOf(schema.minimum, schema.exclusiveMinimum, Math.max);
  const upper = boundOf(schema.maximum, schema.exclusiveMaximum, Math.min);
  const multipleOf = Number(schema.multipleOf ?? 0);
  const isMultiple = multipleOf > 0;
  if (!isInteger && !isMultiple && lower && upper && (lower.isExclusive || upper.isExclusive)) {
    return (lower.value + upper.value) / 2;
  }
  // The multiple of an integer must be an integer.
  const step = isMultiple ? (isInteger && multipleOf % 1 !== 0 ? 1 : multipleOf) : 1;
  const start = lower?.value ?? Math.min(step, upper?.value ?? step);
  let steps = lower || isInteger || isMultiple ? Math.ceil(start / step) : start / step;
  if (lower && !isInteger && !isMultiple && !lower.isExclusive) steps = start / step;
  if (!lower && upper && steps * step > upper.value) steps = Math.floor(upper.value / step);
  if (lower?.isExclusive && steps * step <= lower.value) steps++;
  if (upper?.isExclusive && steps * step >= upper.value) steps--;
  const varied = (steps + variant) * step;
  const isBeyond = upper && (upper.isExclusive ? varied >= upper.value : varied > upper.value);
  const value = Number((isBeyond ? steps * step : varied).toPrecision(15));
  return Number.isFinite(value) ? value : 0;
}

/** An exclusive bound is a number, or in older drafts true beside the other one. */
function boundOf(
  inclusive: JsonValue | undefined,
  exclusive: JsonValue | undefined,
  tighter: (...values: number[]) => number,
): Bound | undefined {
  const value = typeof inclusive === "number" ? inclusive : undefined;
  if (typeof exclusive !== "number")
    return value === undefined ? undefined : { value, isExclusive: exclusive === true };
  if (value === undefined) return { value: exclusive, isExclusive: true };
  const bound = tighter(value, exclusive);
  return { value: bound, isExclusive: bound === exclusive };
}

const MAX_CHARACTERS = 10_000;

/** Texts of each format; the number makes them differ. */
const FORMATS: { readonly [format: string]: (variant: number) => string } = {
  "date-time": (variant) => `2026-01-${day(variant)}T12:00:00Z`,
  date: (variant) => `2026-01-${day(variant)}`,
  time: (variant) => `12:00:${day(variant)}Z`,
  duration: (variant) => `P${variant + 1}D`,
  email: (variant) => `user${variant}@example.com`,
  "idn-email": (variant) => `user${variant}@example.com`,
  hostname: (variant) => `host${variant}.example.com`,
  "idn-hostname": (variant) => `host${variant}.example.com`,
  ipv4: (variant) => `192.0.2.${1 + (variant % 250)}`,
  ipv6: (variant) => `2001:db8::${(1 + (variant % 65_000)).toString(16)}`,
  uri: (variant) => `https://example.com/${variant}`,
  "uri-reference": (variant) => `/${variant}`,
  iri: (variant) => `https://example.com/${variant}`,
  "iri-reference": (variant) => `/${variant}`,
  "uri-template": (variant) => `https://example.com/{id}/${variant}`,
  uuid: (variant) => `00000000-0000-4000-8000-${String(variant).padStart(12, "0")}`,
  "json-pointer": (variant) => `/${variant}`,
  "relative-json-pointer": (variant) => String(variant),
  regex: (variant) => `text${variant}`,
  byte: () => "dGV4dA==",
};

/** A text with the format, the pattern and the length of a schema. A format takes precedence over a pattern. */
function textFor(schema: FlatSchema, variant: number): string {
  const { format, pattern } = schema;
  if (typeof format === "string" && Object.hasOwn(FORMATS, format)) return FORMATS[format]?.(variant) ?? "";
  const min = bounded(schema.minLength, 0);
  if (typeof pattern === "string") {
    const text = textOfPattern(pattern, { variant, repeats: 0 });
    return text.length >= min ? text : textOfPattern(pattern, { variant, repeats: min - text.length });
  }
  const text = variant === 0 ? "text" : `text ${variant}`;
  const max = bounded(schema.maxLength, MAX_CHARACTERS);
  if (text.length > max)
    return String(variant)
      .padStart(max, "t")
      .slice(-max || text.length);
  return text.padEnd(min, " text");
}

function bounded(length: unknown, otherwise: number): number {
  return typeof length === "number" ? Math.min(Math.max(0, length), MAX_CHARACTERS) : otherwise;
}

function day(variant: number): string {
  return String(1 + (variant % 28)).padStart(2, "0");
}
