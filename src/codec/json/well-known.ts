import type { DescField, DescMessage } from "@bufbuild/protobuf";

const WRAPPERS = named(
  "DoubleValue FloatValue Int64Value UInt64Value Int32Value UInt32Value BoolValue StringValue BytesValue",
);
const OTHERS = named("Timestamp Duration FieldMask Struct Value ListValue Any");

/** Timestamp, Duration, wrappers, Struct and the like have JSON forms of their own. */
export function isWellKnown(desc: DescMessage): boolean {
  return WRAPPERS.has(desc.typeName) || OTHERS.has(desc.typeName);
}

/** DoubleValue and the other wrappers, whose JSON form is that of their value. */
export function isWrapper(desc: DescMessage): boolean {
  return WRAPPERS.has(desc.typeName);
}

/** A field of a wrapper type is stored as the bare value; only lists, maps and oneofs store the message. */
export function holdsBareValue(field: DescField): boolean {
  return field.fieldKind === "message" && !field.oneof && isWrapper(field.message);
}

/** Whether null is a value of the field, not its absence. */
export function hasOwnNull({ message, enum: desc }: DescField): boolean {
  return message?.typeName === "google.protobuf.Value" || desc?.typeName === "google.protobuf.NullValue";
}

function named(names: string): ReadonlySet<string> {
  return new Set(names.split(" ").map((name) => `google.protobuf.${name}`));
}
