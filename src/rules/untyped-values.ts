import {
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  type Message,
  type JsonValue as MutableJson,
  toJson,
} from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { collects_unknown_fields } from "../../gen/vx/options/v1/options_pb.js";
import type { JsonValue } from "../domain/json.ts";

/**
 * A google.protobuf.Value that contains plain JSON, which takes a fraction of the memory and of the time of
 * nested messages. `kind` is created when the protobuf library reads it.
 */
class JsonHolder implements Value {
  readonly $typeName = "google.protobuf.Value";
  readonly #json: JsonValue;
  #kind: Value["kind"] | undefined;

  constructor(json: JsonValue) {
    this.#json = json;
  }

  get json(): JsonValue {
    return this.#json;
  }

  /** Not a property of each object, which V8 would give a hidden class of its own. */
  get kind(): Value["kind"] {
    this.#kind ??= fromJson(ValueSchema, this.json as MutableJson).kind;
    return this.#kind;
  }
}

/** Creates its JSON each time it is read: a large value is in memory only while it is written. */
class LazyJsonHolder extends JsonHolder {
  readonly #create: () => JsonValue;

  constructor(create: () => JsonValue) {
    super(null);
    this.#create = create;
  }

  override get json(): JsonValue {
    return this.#create();
  }
}

export function valueOfJson(json: JsonValue): Value {
  return new JsonHolder(json);
}

/** The JSON that a decoded untyped field contains; undefined for another object. */
export function heldJsonOf(value: object): JsonValue | undefined {
  return value instanceof JsonHolder ? value.json : undefined;
}

export function jsonOf(value: Value): JsonValue {
  return value instanceof JsonHolder ? value.json : toJson(ValueSchema, value);
}

/** The value of an untyped field that is created when it is written. */
export function lazyValueOf(create: () => JsonValue): Value {
  return new LazyJsonHolder(create);
}

/**
 * The maximum number of values in the untyped fields of a request, whose form the .proto leaves open: enough
 * for a conversation of 2,000 messages and for 128 tools with large schemas.
 */
export const MAX_UNTYPED_VALUES = 65_536;

export const TOO_MANY_UNTYPED = `is too large: a request can have at most ${MAX_UNTYPED_VALUES} values in untyped fields`;

/** google.protobuf.Value: any JSON. Read it with `jsonOf`. */
export function isUntyped(desc: DescMessage): boolean {
  return desc.typeName === "google.protobuf.Value";
}

/** A Struct is stored as a plain object, except inside google.protobuf.Value. */
export function holdsPlainObject(field: DescField): boolean {
  return field.message?.typeName === "google.protobuf.Struct" && !isUntyped(field.parent);
}

/** The value of a field; undefined if it has presence and is not set. */
export function readField(field: DescField, message: Message): unknown {
  const fields = message as unknown as Readonly<Record<string, unknown>>;
  if (!field.oneof) return fields[field.localName];
  const group = fields[field.oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return group.case === field.localName ? group.value : undefined;
}

/** Reading an option takes as long as the rest of a validation, so each message is searched once. */
const collectingFields = new WeakMap<DescMessage, DescField | undefined>();

/** The field that gets the members of a body which the message does not have. */
export function fieldForUnknown(desc: DescMessage): DescField | undefined {
  if (!collectingFields.has(desc)) {
    const collecting = desc.fields.find((field) => getOption(field, collects_unknown_fields));
    collectingFields.set(desc, collecting);
  }
  return collectingFields.get(desc);
}
