import { containsKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";

const MAX_LENGTH = 255;

/** The key that makes a call safe to repeat, quoted or bare; undefined if the caller sent none. */
export function idempotencyKeyOf(call: { headers(name: string): readonly string[] }): string | undefined {
  const given = call.headers("idempotency-key");
  const other = call.headers("request_id");
  if (given.length + other.length === 0) return undefined;
  const values = [...given, ...other];
  const keys = new Set(values.map(unquoted));
  const [key] = keys;
  if (keys.size > 1 || key === undefined) throw invalid("must be sent once");
  if (key === "" || key.length > MAX_LENGTH) throw invalid(`must have 1 to ${MAX_LENGTH} characters`);
  if (!/^[\x20-\x7e]+$/.test(key)) throw invalid("must be printable ASCII");
  // The key is stored.
  if (containsKey(key)) throw invalid("must not contain an API key");
  return key;
}

/** Unquotes a structured-field string, "…" with \" and \\ in it; any other value is used unchanged. */
function unquoted(value: string): string {
  const text = value.trim();
  const inner = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  return inner === undefined ? text : inner.replace(/\\(["\\])/g, "$1");
}

function invalid(description: string): DomainError {
  return DomainError.ofField("idempotency-key", description);
}
