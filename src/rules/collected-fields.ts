import type { DescMessage, Message } from "@bufbuild/protobuf";
import { DomainError } from "../domain/errors.ts";
import type { JsonObject, JsonValue } from "../domain/json.ts";
import { fieldForUnknown } from "./codec-options.ts";

const MAX_NAMES = 64;
const MAX_BYTES = 65_536;
const MAX_NAME_CHARACTERS = 100;

/** The limits of the field that collects unknown names. */
export function checkCollectedFields(desc: DescMessage, message: Message): void {
  const field = fieldForUnknown(desc);
  if (!field) return;
  const collected = (message as unknown as Record<string, JsonObject | undefined>)[field.localName];
  if (collected === undefined) return;
  const entries = Object.entries(collected);
  if (entries.length > MAX_NAMES) {
    throw DomainError.ofField(field.name, `the request has more than ${MAX_NAMES} fields that are not known`);
  }
  for (const [name, value] of entries) {
    if (bytesLeft(value, MAX_BYTES) < 0) {
      const shown = name.slice(0, MAX_NAME_CHARACTERS);
      throw DomainError.ofField(shown, `must be at most ${MAX_BYTES} bytes of JSON`);
    }
  }
}

/** How many of the bytes the JSON of a value leaves; negative, and not read to its end, if it takes more. */
function bytesLeft(value: JsonValue, bytes: number): number {
  if (typeof value === "string")
    return value.length > bytes ? -1 : bytes - Buffer.byteLength(JSON.stringify(value));
  if (typeof value !== "object" || value === null) return bytes - String(value).length;
  const items = Array.isArray(value) ? (value as readonly JsonValue[]) : Object.entries(value).flat();
  // Two brackets; and for each item a comma or a colon, except for one.
  let left = items.length === 0 ? bytes - 2 : bytes - 1;
  for (const item of items) {
    left = bytesLeft(item as JsonValue, left - 1);
    if (left < 0) return left;
  }
  return left;
}
