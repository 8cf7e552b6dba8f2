import { base64Length } from "../../domain/base64.ts";
import { nextTurn } from "../../domain/fairness.ts";
import { isJsonLonger, type JsonValue, knownJsonText, parseJson } from "../../domain/json.ts";
import type { Image, ImageData } from "../../domain/prompt.ts";
import { codePointEnd } from "../../domain/text.ts";

/** Text up to this size is encoded at once, in about a millisecond. */
const AT_ONCE_CHARS = 65_536;
/** Text that is JSON already takes about a millisecond, too. */
const KNOWN_AT_ONCE_CHARS = 1_048_576;
/** Sending this much takes a fifth of a millisecond. Three bytes are four characters of base64. */
const SENT_PER_TURN = 131_072;
const ENCODED_PER_TURN = (SENT_PER_TURN / 4) * 3;
/** Larger values are encoded member by member; a generator for each smaller one would cost more than the encoding. */
const MIN_DIVIDED_CHARS = 4_096;

/** Text as bytes, or a string of base64. */
type Sent = Buffer | string;

export type RequestBody = {
  readonly parts: string | readonly (Sent | BytesToEncode)[];
  readonly bytes: number | undefined;
};

/**
 * The value as JSON. A conversation can have 32 MiB: a large one is encoded in parts and yields to the event
 * loop between them.
 */
export async function writeBody(value: object, chars: number): Promise<RequestBody> {
  if (chars <= AT_ONCE_CHARS) return { parts: JSON.stringify(value), bytes: undefined };
  const parts: (Sent | BytesToEncode)[] = [];
  let text = "";
  for (const piece of pieces(value)) {
    if (typeof piece === "string") {
      text += piece;
      if (text.length < AT_ONCE_CHARS) continue;
      parts.push(Buffer.from(text));
    } else {
      const { data } = piece;
      // The socket encodes a string: buffers would make V8 collect garbage more often.
      parts.push(Buffer.from(text), typeof data === "string" ? data : new BytesToEncode(data));
    }
    text = "";
    await nextTurn();
  }
  parts.push(Buffer.from(text));
  return { parts, bytes: parts.reduce((sum, { length }) => sum + length, 0) };
}

/**
 * The parts in pieces that are sent in a turn each: a socket takes megabytes at once if its upstream reads fast. Undici reads
 * them again if the connection closes before the request was written.
 */
export function inTurns(parts: readonly (Sent | BytesToEncode)[]): AsyncIterable<Sent> {
  return {
    async *[Symbol.asyncIterator]() {
      for (const part of parts) {
        if (part instanceof BytesToEncode) {
          for (let at = 0; at < part.bytes.length; at += ENCODED_PER_TURN) {
            await nextTurn();
            yield part.bytes.toString("base64", at, at + ENCODED_PER_TURN);
          }
          continue;
        }
        for (let at = 0; at < part.length; at += SENT_PER_TURN) {
          await nextTurn();
          const end = at + SENT_PER_TURN;
          yield typeof part === "string" ? part.slice(at, end) : part.subarray(at, end);
        }
      }
    },
  };
}

/** JSON text that is inserted into a body unchanged. It must be valid. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** For a value that is encoded at once, so it is small. */
  toJSON(): unknown {
    return parseJson(this.text);
  }
}

class BytesToEncode {
  readonly bytes: Buffer;
  readonly length: number;

  constructor({ buffer, byteOffset, length }: Uint8Array) {
    this.bytes = Buffer.from(buffer, byteOffset, length);
    this.length = base64Length(length);
  }
}

/** A JSON string that ends with base64, which needs no escapes. It is encoded without a text of both. */
export class Base64Json {
  readonly prefix: string;
  readonly data: ImageData;

  constructor(prefix: string, data: ImageData) {
    this.prefix = prefix;
    this.data = data;
  }

  /** For a value that is encoded at once, so it is small. */
  toJSON(): string {
    const { prefix, data } = this;
    return prefix + (typeof data === "string" ? data : Buffer.from(data).toString("base64"));
  }
}

function* pieces(value: unknown): Generator<string | Base64Json, void, undefined> {
  if (value instanceof Base64Json) {
    yield `"${value.prefix}`;
    yield value;
    yield '"';
    return;
  }
  const known = value instanceof RawJson ? value.text : knownJsonText(value);
  if (known !== undefined) {
    yield* partsOf(known, KNOWN_AT_ONCE_CHARS);
    return;
  }
  if (!isJsonLonger(value as JsonValue, MIN_DIVIDED_CHARS)) {
    yield JSON.stringify(value);
    return;
  }
  if (typeof value === "string") {
    yield '"';
    for (const part of partsOf(value, AT_ONCE_CHARS)) yield JSON.stringify(part).slice(1, -1);
    yield '"';
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
function* partsOf(text: string, maxChars: number): Generator<string, void, undefined> {
  for (let start = 0; start < text.length; ) {
    const end = codePointEnd(text, start + maxChars);
    yield text.slice(start, end);
    start = end;
  }
}

/** The URL of an image; for bytes, a data URL. */
export function urlOf(image: Image): string | Base64Json {
  return image.kind === "url" ? image.url : new Base64Json(`data:${image.mediaType};base64,`, image.data);
}
