import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { json_schema as jsonSchemaOption } from "../../gen/vx/options/v1/options_pb.js";
import type { Schema } from "./schema.ts";

const NULL: Schema = { type: "null" };
/**
 * Accepts only null, and names a second type: of a property whose only type is null, openapi-generator creates Go that does not
 * compile, and its Python generator crashes.
 */
const ALWAYS_NULL: Schema = { type: ["string", "null"], const: null };

/** The same schema, accepting null as well. */
export function nullable(schema: Schema): Schema {
  const { type, anyOf } = schema;
  // An empty schema accepts every value.
  if (Object.keys(schema).length === 0) return schema;
  if (Array.isArray(anyOf)) return includesNull(anyOf) ? schema : { ...schema, anyOf: [...anyOf, NULL] };
  if (type === "null" || (Array.isArray(type) && type.includes("null"))) return schema;
  // Generators fail on an enum that contains null.
  if (type === undefined || "enum" in schema || "const" in schema) return { anyOf: [schema, NULL] };
  return { ...schema, type: [type, "null"] };
}

function includesNull(schemas: readonly Schema[]): boolean {
  return schemas.some(({ type }) => type === "null");
}

/** The schema of a google.protobuf.Value, from its json_schema option. */
export function untypedSchema(field: DescField): Schema {
  return hasOption(field, jsonSchemaOption) ? property(JSON.parse(getOption(field, jsonSchemaOption)) as Schema) : {};
}

function property(schema: Schema): Schema {
  const { type, ...others } = schema;
  return type === "null" ? { ...others, ...ALWAYS_NULL } : explicit(schema);
}

/** Adds the keywords that generators need: a type beside each enum and const, items in each array. */
function explicit(schema: Schema): Schema {
  const { enum: values, const: value, anyOf, properties, items, type } = schema;
  if (Array.isArray(values)) return explicitEnum(values, schema);
  if (value !== undefined) return explicitConst(value, schema);
  const result: Record<string, unknown> = { ...schema };
  if (Array.isArray(anyOf)) result.anyOf = anyOf.map(explicit);
  if ([type].flat().includes("array")) result.items = explicit((items ?? {}) as Schema);
  if (properties !== undefined) {
    const entries = Object.entries(properties as Record<string, Schema>);
    result.properties = Object.fromEntries(entries.map(([name, one]) => [name, property(one)]));
  }
  return result;
}

/** openapi-generator creates Java that does not compile for a boolean with a const or an enum. */
function explicitConst(value: unknown, { const: _, ...others }: Schema): Schema {
  const only = typeof value === "boolean" ? { not: { const: !value } } : { const: value };
  return { type: typeOf(value), ...others, ...only };
}

function explicitEnum(values: readonly unknown[], { enum: _, ...others }: Schema): Schema {
  const present = values.filter((value) => value !== null);
  const [first] = present;
  const schema = present.length === 1 ? explicitConst(first, others) : { type: typeOf(first), ...others, enum: present };
  return present.length < values.length ? nullable(schema) : schema;
}

function typeOf(value: unknown): string {
  if (Number.isInteger(value)) return "integer";
  return typeof value;
}
