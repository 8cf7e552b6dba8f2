import type { JsonObject, JsonValue } from "../../src/domain/json.ts";

const names = Array.from({ length: 10_000 }, (_, i) => `p${i}`);
const all = (schema: JsonValue) => Object.fromEntries(names.map((name) => [name, schema]));
const branching = all({ $ref: "#" });
const longText = "x".repeat(1_000_000);
/** Schemas whose instances would be endless or very large, or take long to make. */
export const HOSTILE_SCHEMAS: Readonly<Record<string, JsonObject>> = {
  "10,000 required properties": { type: "object", properties: all({ type: "string" }), required: names },
  "10,000 references": { properties: branching, required: names, anyOf: [{ required: ["p0"] }, { required: ["p1"] }] },
  "10,000 merged properties": { properties: branching, allOf: [{ $ref: "#" }, { properties: branching }] },
  "10,000 choices": { anyOf: names.map(() => ({ $ref: "#" })) },
  "repeated long names and constants": {
    properties: { a: { $ref: "#" }, b: { $ref: "#" }, [longText]: { $ref: "#" }, c: { const: longText } },
    required: ["a", "b", "c", longText],
  },
  "no end": { properties: { a: { $ref: "#" }, b: { $ref: "#" }, c: { $ref: "#" } }, required: ["a", "b", "c"] },
  "references in a circle": { allOf: [{ $ref: "#/allOf/1" }, { $ref: "#/allOf/0" }] },
  "nested long lists": { minItems: 1e9, items: { minItems: 1e9, items: { type: "string", minLength: 1e9 } } },
  "many choices of a schema with 10,000 keywords": { ...all("x"), anyOf: names.slice(0, 64).map(() => ({ $ref: "#" })) },
  "long references": { minItems: 1_000, items: { $ref: `#${"/a".repeat(400_000)}` } },
  "nested repetitions": { pattern: "((((a{1000}){1000}){1000}){1000})" },
  "nested groups": { pattern: "(".repeat(2_000) },
  "many long patterns": { minItems: 1_000, items: { minItems: 1_000, items: { pattern: `[${"!-~".repeat(660)}]{0}` } } },
  "wrong keywords": {
    type: 7,
    properties: [],
    required: "a",
    enum: {},
    anyOf: 3,
    allOf: [null, 4],
    $ref: "#/%E0%A4%A",
    items: 5,
    minItems: "x",
    minimum: "1",
    pattern: 5,
  },
};
