import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { never_null } from "../../gen/vx/options/v1/options_pb.js";
import type { UnknownFields } from "../../src/codec/json/reader.ts";
import { omitsUnset } from "../../src/rules/policy.ts";
import { isUntyped } from "../../src/rules/untyped-values.ts";
import type { CommentOf } from "./comments.ts";
import { rulesOf } from "./rules.ts";
import { clean, type Schema } from "./schema.ts";
import { nullable, untypedSchema } from "./untyped.ts";

/** Collects the schemas of messages. A message that is both sent and received has two: its required fields differ. */
export class Schemas {
  readonly #components = new Map<string, Schema>();
  /** What each name stands for: names have no package. */
  readonly #owners = new Map<string, string>();
  readonly #commentOf: CommentOf;

  constructor(commentOf: CommentOf) {
    this.#commentOf = commentOf;
  }

  get components(): Schema {
    const sorted = [...this.#components].sort(([one], [other]) => (one < other ? -1 : 1));
    return Object.fromEntries(sorted);
  }

  /** The schema of a request body: the fields of the message that are not in the address. */
  body(desc: DescMessage, fields: readonly DescField[], unknown: UnknownFields): Schema {
    return this.#register(desc, "body", desc.name, () => this.#request(fields, unknown));
  }

  response(desc: DescMessage): Schema {
    return this.#register(desc, "response", responseName(desc), () => this.#response(desc));
  }

  /**
   * The data of an event. Which of its fields are set depends on the type of the event. Without components: oapi-codegen removes
   * those to which only webhooks refer.
   */
  event(desc: DescMessage): Schema {
    const nested = ({ fields }: DescMessage) => clean({ ...this.#object(fields), required: undefined });
    const property = (field: DescField) => this.#described(field, this.#value(field, nested));
    return {
      description: this.#commentOf(desc),
      type: "object",
      properties: Object.fromEntries(desc.fields.map((field) => [field.name, property(field)])),
    };
  }

  /** A parameter of the path or the query. */
  parameter(field: DescField): Schema {
    return this.#requestValue(field, "refuse");
  }

  #register(desc: DescMessage, use: string, name: string, make: () => Schema): Schema {
    const reference = { $ref: `#/components/schemas/${name}` };
    const owner = `${desc.typeName} (${use})`;
    const known = this.#owners.get(name);
    if (known === owner) return reference;
    if (known !== undefined) throw new Error(`the schema name ${name} stands for ${known} and ${owner}`);
    this.#owners.set(name, owner);
    this.#components.set(name, {});
    const description = this.#commentOf(desc);
    this.#components.set(name, clean({ description: description || undefined, ...make() }));
    return reference;
  }

  #request(fields: readonly DescField[], unknown: UnknownFields): Schema {
    const required = fields.filter((field) => !rulesOf(field).optional).map(({ name }) => name);
    // In a request, a field that is null counts as left out, or is cleared by an update.
    const property = (field: DescField) => {
      const value = this.#requestValue(field, unknown);
      return this.#described(field, acceptsNull(field) ? nullable(value) : value);
    };
    return clean({
      type: "object",
      properties: Object.fromEntries(fields.map((field) => [field.name, property(field)])),
      required: required.length > 0 ? required : undefined,
      additionalProperties: unknown === "ignore" ? undefined : false,
    });
  }

  #requestValue(field: DescField, unknown: UnknownFields): Schema {
    const { keywords, items } = rulesOf(field);
    const nested = (desc: DescMessage) =>
      this.#register(desc, "input", `${desc.name}Input`, () => this.#request(desc.fields, unknown));
    const value = this.#value(field, nested);
    if (field.fieldKind !== "list") return { ...value, ...keywords };
    return { ...value, ...keywords, items: { ...(value.items as Schema), ...items } };
  }

  #response(desc: DescMessage): Schema {
    const oneof = desc.oneofs.find(({ fields }) => !fields[0]?.proto.proto3Optional);
    if (!oneof) return this.#object(desc.fields);
    if (oneof.fields.length < desc.fields.length) {
      throw new Error(`${desc.typeName}: a oneof beside other fields is not described yet`);
    }
    return { oneOf: oneof.fields.map((field) => ({ title: eventTitle(field), ...this.#object([field]) })) };
  }

  #object(fields: readonly DescField[]): Schema {
    return {
      type: "object",
      properties: Object.fromEntries(fields.map((field) => [field.name, this.#described(field, this.#responseValue(field))])),
      required: fields.filter((field) => !isOmittable(field)).map(({ name }) => name),
    };
  }

  /** A response that is one field of the message: services always set it. */
  responseField(field: DescField): Schema {
    return this.#value(field, (desc) => this.response(desc));
  }

  /**
   * Responses contain every field, except in messages with the option omit_unset. An unset field is null, unless the
   * rules require it.
   */
  #responseValue(field: DescField): Schema {
    const value = this.#value(field, (desc) => this.response(desc));
    if (field.presence !== Presence.EXPLICIT || (field.oneof && !field.proto.proto3Optional)) return value;
    // The json_schema option of a Value defines whether null is possible.
    if ((field.message && isUntyped(field.message)) || !rulesOf(field).optional) return value;
    if (isOmittable(field)) return value;
    return nullable(value);
  }

  #value(field: DescField, nested: (desc: DescMessage) => Schema): Schema {
    switch (field.fieldKind) {
      case "scalar":
        return scalarSchema(field.scalar);
      case "message":
        return isUntyped(field.message) ? untypedSchema(field) : messageSchema(field.message, nested);
      case "list":
        if (field.listKind === "scalar") return { type: "array", items: scalarSchema(field.scalar) };
        if (field.listKind === "message") return { type: "array", items: messageSchema(field.message, nested) };
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
  if (desc.typeName === "google.protobuf.Struct") return { type: "object" };
  if (desc.typeName === "google.protobuf.FieldMask") return { type: "string" };
  return nested(desc);
}

/** Whether a response leaves the field out if it is unset. For an untyped field, null would be a value. */
function isOmittable(field: DescField): boolean {
  if (field.message && isUntyped(field.message)) return true;
  return field.presence === Presence.EXPLICIT && omitsUnset(field.parent);
}

/** DeltaEvent for "delta": generators name the type of each alternative after its title. */
function eventTitle({ name }: DescField): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}Event`;
}

/**
 * GenerateResponse becomes GenerateResult: generators name their own types operation id + "Response". Each client of typescript-fetch
 * exports a class ResponseError.
 */
function responseName({ name }: DescMessage): string {
  if (name === "ResponseError") return "ResponseFailure";
  return name.replace(/Response$/, "Result");
}

function scalarSchema(type: ScalarType): Schema {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BYTES:
      return { type: "string", format: "byte" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.INT32:
      return { type: "integer", format: "int32" };
    case ScalarType.INT64:
      return { type: "integer", format: "int64" };
    case ScalarType.FLOAT:
      return { type: "number", format: "float" };
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    default:
      throw new Error(`${ScalarType[type]} is not described yet`);
  }
}

function acceptsNull(field: DescField): boolean {
  return rulesOf(field).optional && !getOption(field, never_null);
}
