import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { valueOfSchema } from "../../src/upstreams/sandbox/schema-value.ts";
import { HOSTILE_SCHEMAS } from "../support/hostile-schemas.ts";

/** An object with exactly these properties. */
const object = (properties: JsonObject) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const PERSON = object({ name: { type: "string" }, age: { type: "integer" } });

const SCHEMAS: Readonly<Record<string, JsonObject>> = {
  "an empty schema": {},
  "a text": { type: "string" },
  "a short text": { type: "string", maxLength: 2 },
  "an empty text": { type: "string", maxLength: 0 },
  "a long text": { type: "string", minLength: 40, maxLength: 41 },
  "an integer between": { type: "integer", exclusiveMinimum: 3, maximum: 4 },
  "a negative integer": { type: "integer", maximum: -7 },
  "an integer below": { type: "integer", exclusiveMaximum: 1 },
  "a number between": { type: "number", exclusiveMinimum: 0.1, exclusiveMaximum: 0.2 },
  "a number from": { type: "number", minimum: 2.5 },
  "a number up to": { type: "number", maximum: 0.25 },
  "a multiple": { type: "integer", multipleOf: 7, minimum: 50 },
  "a negative multiple": { type: "integer", multipleOf: 7, maximum: -50 },
  "a fraction": { type: "number", multipleOf: 0.25, exclusiveMinimum: 1 },
  "a boolean": { type: "boolean" },
  "a null": { type: "null" },
  "one of several types": { type: ["null", "integer"] },
  "an enum": { enum: ["red", "green"] },
  "an enum of objects": { enum: [{ a: 1 }, null] },
  "a constant": { const: { a: [1, null] } },
  "a person": PERSON,
  "optional properties": { type: "object", properties: { a: { type: "string" }, b: false } },
  "properties without a type": { properties: { a: { minimum: 4 }, b: { items: { type: "null" } } }, required: ["a", "b"] },
  "unknown required properties": { type: "object", required: ["a", "b"], additionalProperties: { type: "integer" } },
  "names of Object.prototype": {
    type: "object",
    properties: { constructor: { type: "integer" }, toString: { type: "null" } },
    required: ["constructor", "toString", "valueOf"],
  },
  "a list": { type: "array", items: PERSON },
  "a list of three": { type: "array", items: { type: "string" }, minItems: 3 },
  "an empty list": { type: "array", items: { type: "string" }, maxItems: 0 },
  "a list of different texts": { type: "array", items: { type: "string", maxLength: 3 }, minItems: 5, uniqueItems: true },
  "a list of different values": { type: "array", items: { enum: ["a", "b", "c"] }, minItems: 3, uniqueItems: true },
  "a list of different objects": { type: "array", items: PERSON, minItems: 4, uniqueItems: true },
  "a tuple": { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], items: false, minItems: 2 },
  "a choice": { anyOf: [{ type: "integer", minimum: 5 }, { type: "string" }] },
  "a choice with a null": { anyOf: [PERSON, { type: "null" }] },
  "a choice among requirements": {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "string" } },
    anyOf: [{ required: ["a"] }, { required: ["b"] }],
  },
  "a discriminated union": {
    type: "array",
    minItems: 2,
    items: {
      oneOf: [
        object({ kind: { const: "circle" }, radius: { type: "number" } }),
        object({ kind: { const: "square" }, side: { type: "number" } }),
      ],
    },
  },
  "all of": {
    allOf: [
      { type: "object", properties: { a: { type: "number", minimum: 3 } }, required: ["a"] },
      { properties: { b: { enum: [1, 2] } }, required: ["b"] },
    ],
  },
  "a reference": { $defs: { person: PERSON }, type: "object", properties: { p: { $ref: "#/$defs/person" } }, required: ["p"] },
  "a reference with escapes": { $defs: { "a/b~c d": { type: "integer" } }, $ref: "#/$defs/a~1b~0c%20d" },
  "a reference beside keywords": { $defs: { text: { type: "string" } }, $ref: "#/$defs/text", minLength: 9 },
  "a linked list": {
    $ref: "#/$defs/node",
    $defs: { node: object({ value: { type: "number" }, next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } }) },
  },
  "a tree": object({ name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } }),
  "an expression that ends only in a literal": {
    $ref: "#/$defs/expression",
    $defs: {
      expression: { anyOf: [{ $ref: "#/$defs/sum" }, { $ref: "#/$defs/literal" }] },
      sum: object({ left: { $ref: "#/$defs/expression" }, right: { $ref: "#/$defs/expression" } }),
      literal: object({ value: { type: "number" } }),
    },
  },
};

// biome-ignore format: a few lines
const PATTERNS: readonly string[] = [
  "^[a-z]+$", "^\\d{3}-\\d{4}$", "^(foo|bar)_[A-Z]{2,}$", "^[^a-z]*x$", "^#[0-9a-fA-F]{6}$", "^\\p{Lu}\\w*$",
  "^(?:\\+?1[-. ])?\\(\\d{3}\\) ?\\d+$", "^v?(?<major>0|[1-9]\\d*)\\.(0|[1-9]\\d*)$", "^\\u0041\\x42\\/\\.\\$$",
  "^[\\w.-]+@[\\w-]+\\.[a-z]{2,4}$", "a|b", "^$",
];

const ajv = new Ajv2020({ strict: false, validateFormats: false });

function check(schema: JsonObject): JsonValue {
  const validate = ajv.compile(schema);
  const instance = valueOfSchema(schema);
  const isValid = validate(JSON.parse(JSON.stringify(instance)));
  expect(validate.errors ?? [], JSON.stringify(instance)).toEqual([]);
  expect(isValid).toBe(true);
  return instance;
}

describe("an instance matches", () => {
  test.each(Object.entries(SCHEMAS))("%s", (_, schema) => {
    check(schema);
    const { $defs, ...inner } = schema;
    check({ type: "object", properties: { inner }, required: ["inner"], ...($defs !== undefined && { $defs }) });
  });

  test.each(PATTERNS)("the pattern %s", (pattern) => {
    check({ type: "string", pattern });
  });

  test("a pattern with a minimum length", () => {
    expect(check({ type: "string", pattern: "^[a-z]+$", minLength: 12 })).toHaveLength(12);
  });

  test("formats", () => {
    const at = (format: string) => String(valueOfSchema({ type: "string", format }));
    expect(new Date(at("date-time")).getTime()).not.toBeNaN();
    expect(new Date(at("date")).getTime()).not.toBeNaN();
    expect(at("email")).toMatch(/^\w+@\w+\.\w+$/);
    expect(URL.canParse(at("uri"))).toBe(true);
    expect(at("uuid")).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/);
    expect(at("unknown")).toBe("text 1");
  });
});

test("values are usual ones: small numbers, and texts with the name of the property", () => {
  const integer = { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
  const properties = { first_name: { type: "string" }, age: integer, price: { type: "number", minimum: 0 } };
  expect(check({ type: "object", properties, required: Object.keys(properties) })).toEqual({
    first_name: "first name 1",
    age: 1,
    price: 1.5,
  });
});

test("omits optional parts without an end, and ends required ones", () => {
  check({ type: "object", properties: { a: { type: "integer" }, again: { $ref: "#" } }, required: ["a"] });
  check({
    type: "object",
    properties: { again: { $ref: "#/$defs/endless" } },
    $defs: { endless: { type: "object", properties: { a: { $ref: "#/$defs/endless" } }, required: ["a"] } },
  });
  const endless = valueOfSchema({ type: "object", properties: { a: { $ref: "#" } }, required: ["a"] });
  expect(JSON.stringify(endless).length).toBeLessThan(1_000);
});

test.each(Object.entries(HOSTILE_SCHEMAS))("the instance of a hostile schema is small: %s", (_, schema) => {
  expect(JSON.stringify(valueOfSchema(schema)).length).toBeLessThan(1_000_000);
});
