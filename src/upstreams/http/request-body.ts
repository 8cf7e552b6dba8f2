import { setImmediate } from "node:timers/promises";
import type { JsonValue } from "../../domain/json.ts";
import { isJsonLonger, knownJsonText } from "../../domain/json-text.ts";

/** Text up to this size is encoded at once, in about a millisecond. */
const AT_ONCE_CHARS = 65_536;
/** Larger values are encoded member by member; a generator for each smaller one would cost more than the encoding. */
const MIN_DIVIDED_CHARS = 4_096;

export type RequestBody = { readonly parts: string | readonly Buffer[]; readonly bytes: number | undefined };

/**
 * The value as JSON. A conversation can have 32 MiB: a large one is encoded in parts and yields to the event
 * loop between them.
 */
export async function writeBody(value: object, chars: number): Promise<RequestBody> {
  if (chars <= AT_ONCE_CHARS) return { parts: JSON.stringify(value), bytes: undefined };
  const parts: Buffer[] = [];
  let text = "";
  for (const piece of pieces(value)) {
    text += piece;
    if (text.length < AT_ONCE_CHARS) continue;
    parts.push(Buffer.from(text));
    text = "";
    await setImmediate();
  }
  parts.push(Buffer.from(text));
  return { parts, bytes: parts.reduce((sum, { length }) => sum + length, 0) };
}

/** JSON text that becomes part of a body as it is. It must be valid. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** For a value that is encoded at once, so it is small. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** The JSON of a value, in pieces. */
function* pieces(value: unknown): Generator<string, void, undefined> {
  const known = knownJsonText(value);
  if (known !== undefined) {
    yield known;
    return;
  }
  if (!isJsonLonger(value as JsonValue, MIN_DIVIDED_CHARS)) {
    yield JSON.stringify(value);
    return;
  }
  if (typeof value === "string") {
    yield '"';
    for (let start = 0; start < value.length; ) {
      const end = endOfPart(value, start);
      yield JSON.stringify(value.slice(start, end)).slice(1, -1);
      start = end;
    }
    yield '"';
    return;
  }
  if (value instanceof RawJson) {
    yield value.text;
    return;
  }
  const isArray = Array.isArray(value);
  yield isArray ? "[" : "{";
  let comma = "";
  for (const [name, member] of Object.entries(value as object)) {
    if (member === undefined) continue;
    yield isArray ? comma : `${comma}${JSON.stringify(name)}:`;
    yield* pieces(member);
    comma = ",";
  }
  yield isArray ? "]" : "}";
}

/** Does not split a surrogate pair: each half would be written as an escape. */
function endOfPart(text: string, start: number): number {
  const end = start + AT_ONCE_CHARS;
  return /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end;
}
