import type { DescField, DescMessage } from "@bufbuild/protobuf";

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
