import type { DescMessage } from "@bufbuild/protobuf";

/**
 * The maximum number of values in a request's google.protobuf.Value fields, whose form the .proto leaves
 * open: enough for 200 messages of eight parts each. Each value becomes a message, so more would block the
 * event loop for other calls.
 */
export const MAX_UNTYPED_VALUES = 5_000;

/** The length of the longest text that any field may have. */
export const MAX_UNTYPED_CHARACTERS = 400_000;

export const TOO_MANY_UNTYPED = `is too large: a request can have at most ${MAX_UNTYPED_VALUES} values in untyped fields`;

export function isUntyped(desc: DescMessage): boolean {
  return desc.typeName === "google.protobuf.Value";
}
