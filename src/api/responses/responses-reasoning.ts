import { MAX_PARTS } from "../../domain/conversation.ts";
import type { JsonObject, JsonValue } from "../../domain/json.ts";
import type { Reasoning } from "../../domain/prompt.ts";
import { objectAt, optionalListAt, optionalTextAt, textAt } from "../untyped-members.ts";

/** Marks a signature in the only opaque field that the format has; its text is then in the summary. */
const SIGNATURE = "vx-signature:";

export function encryptedContentOf({ signature, encrypted }: Reasoning): string | undefined {
  return encrypted ?? (signature === undefined ? undefined : SIGNATURE + signature);
}

/** The block of a reasoning item; undefined if the item has only an id, because items are not stored. */
export function reasoningOf(item: JsonObject, field: string): Reasoning | undefined {
  const text = textsIn(item.summary, `${field}.summary`) || textsIn(item.content, `${field}.content`);
  const opaque = optionalTextAt(item.encrypted_content, `${field}.encrypted_content`);
  if (text === "" && opaque === undefined) return undefined;
  return opaque?.startsWith(SIGNATURE)
    ? { text, signature: opaque.slice(SIGNATURE.length), encrypted: undefined }
    : { text, signature: undefined, encrypted: opaque };
}

function textsIn(parts: JsonValue | undefined, field: string): string {
  return (optionalListAt(parts, field, MAX_PARTS) ?? [])
    .map((part, i) => textAt(objectAt(part, `${field}[${i}]`).text, `${field}[${i}].text`))
    .join("");
}
