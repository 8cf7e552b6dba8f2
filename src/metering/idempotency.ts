import { createHash } from "node:crypto";
import { containsKey } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import type { Call } from "../gate/call.ts";
import type { Ask } from "./ask.ts";

const MAX_LENGTH = 255;
/** Hashing this much takes about a millisecond; then others get their turn. */
const SLICE_CHARACTERS = 524_288;

/** The key that makes a call safe to repeat, quoted or bare; undefined if the caller sent none. */
export function idempotencyKeyOf(call: Pick<Call, "headers">): string | undefined {
  const values = [...call.headers("idempotency-key"), ...call.headers("request_id")];
  if (values.length === 0) return undefined;
  const keys = new Set(values.map(unquoted));
  const [key] = keys;
  if (keys.size > 1 || key === undefined) throw invalid("must be sent once");
  if (key === "" || key.length > MAX_LENGTH) throw invalid(`must have 1 to ${MAX_LENGTH} characters`);
  if (!/^[\x20-\x7e]+$/.test(key)) throw invalid("must be printable ASCII");
  // It is stored.
  if (containsKey(key)) throw invalid("must not contain an API key");
  return key;
}

/** As a structured field, "…" with \" and \\ in it; anything else is taken as it is. */
function unquoted(value: string): string {
  const text = value.trim();
  const inner = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  return inner === undefined ? text : inner.replace(/\\(["\\])/g, "$1");
}

function invalid(description: string): DomainError {
  return DomainError.ofField("idempotency-key", description);
}

/** The same for the same payload. Large texts are hashed slice by slice. */
export async function digestOf(rpc: string, ask: Ask): Promise<string> {
  const hash = createHash("sha256");
  const { model, maxTokens, temperature, stop, messages } = ask;
  hash.update(JSON.stringify([rpc, model, maxTokens ?? null, temperature ?? null, stop]));
  let fresh = SLICE_CHARACTERS;
  for (const { role, content } of messages) {
    hash.update(`${role}:${content.length}:`);
    for (let at = 0; at < content.length; at += SLICE_CHARACTERS) {
      const slice = content.slice(at, at + SLICE_CHARACTERS);
      hash.update(slice, "utf16le");
      fresh -= slice.length;
      if (fresh > 0) continue;
      fresh = SLICE_CHARACTERS;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return hash.digest("base64url");
}
