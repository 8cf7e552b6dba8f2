import type { DescMessage } from "@bufbuild/protobuf";

/**
 * How many values a request may have in its fields of the type google.protobuf.Value, whose form the .proto leaves
 * open: enough for 200 messages of eight parts each. Making a message of each of more would keep others waiting.
 */
export const MAX_UNTYPED_VALUES = 5_000;

/** As long as the longest text that any field may have. */
export const MAX_UNTYPED_CHARACTERS = 400_000;

export const TOO_MANY_UNTYPED = `is too large: a request may have at most ${MAX_UNTYPED_VALUES} values in fields of any form`;

export function isUntyped(desc: DescMessage): boolean {
  return desc.typeName === "google.protobuf.Value";
}
