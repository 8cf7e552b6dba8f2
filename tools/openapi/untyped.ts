import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import { json_schema as jsonSchemaOption } from "../../gen/vx/options/v1/options_pb.js";
import type { Schema } from "../../src/server/pages/openapi/schema.ts";

const NULL: Schema = { type: "null" };

/** The same schema, accepting null as well. */
export function nullable(schema: Schema): Schema {
  const { type, anyOf } = schema;
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
  return hasOption(field, jsonSchemaOption)
    ? explicit(JSON.parse(getOption(field, jsonSchemaOption)) as Schema)
    : {};
}

/** Adds the keywords that generators need: a type beside each enum and const, items in each array. */
function explicit(schema: Schema): Schema {
  const { enum: values, const: value, anyOf, properties, items, type } = schema;
  if (Array.isArray(values)) return explicitEnum(values, schema);
  if (value !== undefined) return { type: typeOf(value), ...schema };
  const result: Record<string, unknown> = { ...schema };
  if (Array.isArray(anyOf)) result.anyOf = anyOf.map(explicit);
  if ([type].flat().includes("array")) result.items = explicit((items ?? {}) as Schema);
  if (properties !== undefined) {
    const entries = Object.entries(properties as Record<string, Schema>);
    result.properties = Object.fromEntries(entries.map(([name, one]) => [name, explicit(one)]));
  }
  return result;
}

function explicitEnum(values: readonly unknown[], { enum: _, ...others }: Schema): Schema {
  const present = values.filter((value) => value !== null);
  const [first] = present;
  const only = present.length === 1 ? { const: first } : { enum: present };
  const schema = { type: typeOf(first), ...others, ...only };
  return present.length < values.length ? nullable(schema) : schema;
}

function typeOf(value: unknown): string {
  if (Number.isInteger(value)) return "integer";
  return typeof value;
}
