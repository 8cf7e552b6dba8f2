import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { json_schema as jsonSchemaOption } from "../../../gen/vx/options/v1/options_pb.js";
import { isUntyped } from "../../policy/untyped-values.ts";
import type { UnknownFields } from "../reader.ts";
import type { CommentOf } from "./comments.ts";
import { clean, rulesOf, type Schema } from "./rules.ts";

/** Collects the schemas of messages. One that is sent and received has two: what may be left out differs. */
export class Schemas {
  readonly #components = new Map<string, Schema>();
  readonly #commentOf: CommentOf;

  constructor(commentOf: CommentOf) {
    this.#commentOf = commentOf;
  }

  get components(): Schema {
    const sorted = [...this.#components].sort(([one], [other]) => (one < other ? -1 : 1));
    return Object.fromEntries(sorted);
  }

  /** A request body: the fields of the message that the address does not have. */
  body(desc: DescMessage, fields: readonly DescField[], unknown: UnknownFields): Schema {
    return this.#register(desc, desc.name, () => this.#request(fields, unknown));
  }

  response(desc: DescMessage): Schema {
    return this.#register(desc, desc.name, () => this.#response(desc));
  }

  /** A parameter of the path or the query. */
  parameter(field: DescField): Schema {
    return this.#requestValue(field, "refuse");
  }

  #register(desc: DescMessage, name: string, make: () => Schema): Schema {
    const reference = { $ref: `#/components/schemas/${name}` };
    const known = this.#components.get(name);
    if (known) return reference;
    this.#components.set(name, {});
    const description = this.#commentOf(desc);
    this.#components.set(name, clean({ description: description || undefined, ...make() }));
    return reference;
  }

  #request(fields: readonly DescField[], unknown: UnknownFields): Schema {
    const required = fields.filter((field) => !rulesOf(field).optional).map(({ name }) => name);
    return clean({
      type: "object",
      properties: Object.fromEntries(
        fields.map((field) => [field.name, this.#described(field, this.#requestValue(field, unknown))]),
      ),
      required: required.length > 0 ? required : undefined,
      additionalProperties: unknown === "ignore" ? undefined : false,
    });
  }

  #requestValue(field: DescField, unknown: UnknownFields): Schema {
    const { keywords, items } = rulesOf(field);
    const nested = (desc: DescMessage) =>
      this.#register(desc, `${desc.name}Input`, () => this.#request(desc.fields, unknown));
    const value = this.#value(field, nested);
    if (value.type === "boolean" && field.presence === Presence.IMPLICIT) return { ...value, default: false };
    if (field.fieldKind !== "list") return { ...value, ...keywords };
    return { ...value, ...keywords, items: { ...(value.items as Schema), ...items } };
  }

  #response(desc: DescMessage): Schema {
    const oneof = desc.oneofs.find(({ fields }) => !fields[0]?.proto.proto3Optional);
    if (!oneof) return this.#object(desc.fields);
    if (oneof.fields.length < desc.fields.length) {
      throw new Error(`${desc.typeName}: a oneof beside other fields is not described yet`);
    }
    return { oneOf: oneof.fields.map((field) => ({ title: field.name, ...this.#object([field]) })) };
  }

  #object(fields: readonly DescField[]): Schema {
    return {
      type: "object",
      properties: Object.fromEntries(
        fields.map((field) => [field.name, this.#described(field, this.#responseValue(field))]),
      ),
      required: fields.map(({ name }) => name),
    };
  }

  /** Every field is there; what is not set is null. */
  #responseValue(field: DescField): Schema {
    const value = this.#value(field, (desc) => this.response(desc));
    if (field.presence !== Presence.EXPLICIT || (field.oneof && !field.proto.proto3Optional)) return value;
    // What is open says itself whether it may be null.
    if (field.message && isUntyped(field.message)) return value;
    return "$ref" in value ? { anyOf: [value, { type: "null" }] } : { ...value, type: [value.type, "null"] };
  }

  #value(field: DescField, nested: (desc: DescMessage) => Schema): Schema {
    switch (field.fieldKind) {
      case "scalar":
        return scalarSchema(field.scalar);
      case "message":
        return isUntyped(field.message) ? untypedSchema(field) : messageSchema(field.message, nested);
      case "list":
        if (field.listKind === "scalar") return { type: "array", items: scalarSchema(field.scalar) };
        if (field.listKind === "message")
          return { type: "array", items: messageSchema(field.message, nested) };
    }
    throw new Error(`${field.parent.typeName}.${field.name}: such a field is not described yet`);
  }

  #described(field: DescField, schema: Schema): Schema {
    const description = this.#commentOf(field);
    return description === "" ? schema : { description, ...schema };
  }
}

function messageSchema(desc: DescMessage, nested: (desc: DescMessage) => Schema): Schema {
  if (desc.typeName === "google.protobuf.Timestamp") return { type: "string", format: "date-time" };
  return nested(desc);
}

/** Any JSON, but for what the option says. */
function untypedSchema(field: DescField): Schema {
  const text = hasOption(field, jsonSchemaOption) ? getOption(field, jsonSchemaOption) : "{}";
  return JSON.parse(text) as Schema;
}

function scalarSchema(type: ScalarType): Schema {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.INT32:
      return { type: "integer", format: "int32" };
    case ScalarType.INT64:
      return { type: "integer", format: "int64" };
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    default:
      throw new Error(`${ScalarType[type]} is not described yet`);
  }
}
