import type { Message } from "@bufbuild/protobuf";
import { keepIgnored } from "../rules/ignored-members.ts";
import { heldJsonOf } from "../rules/untyped-values.ts";
import type { BodyShare } from "./body-budget.ts";
import { JsonScanner } from "./json/json-scanner.ts";
import type { Reader } from "./json/reader.ts";
import { finishInTurns, type Steps } from "./steps.ts";

/** The first part of a smaller body is decoded at once: the event loop is blocked only briefly. */
export const LARGE_BYTES = 262_144;

/**
 * Decodes small bodies at once; large ones, and small ones with many values, one at a time, in parts, so that
 * other calls run in between. From then on the share counts the memory of the message instead of the body.
 */
export function decode(bytes: Buffer, share: BodyShare, steps: Steps<Message>): Message | Promise<Message> {
  const weighed = decodeAndWeigh(bytes, share, steps);
  if (bytes.length < LARGE_BYTES) {
    const first = weighed.next();
    if (first.done) return first.value;
  }
  return share.inTurn(() => finishInTurns(weighed));
}

function* decodeAndWeigh(bytes: Buffer, share: BodyShare, steps: Steps<Message>): Steps<Message> {
  const message = yield* steps;
  share.resize(yield* weighMessage(message, bytes.length));
  return message;
}

/** Reads the whole body as one message. */
export function* readJsonMessage(read: Reader, bytes: Buffer): Steps<Message> {
  const scanner = new JsonScanner(bytes);
  const message = yield* read(scanner, "");
  scanner.end();
  if (scanner.ignored) keepIgnored(message, scanner.ignored);
  return message;
}

/** The values to weigh before other calls may run, and the units of text that take as long as one: at most two milliseconds of work. */
const STEP_VALUES = 4_096;
const UNITS_PER_VALUE = 128;

/** A message from a body up to this size weighs this many times the body, so that it need not be looked at. */
const SMALL_BODY_BYTES = 1_024;
const SMALL_FACTOR = 16;

const STRING_BYTES = 24;
const OBJECT_BYTES = 64;
const MEMBER_BYTES = 16;

/** A shorter string weighs the most that its length allows. */
const MEASURED_UNITS = 64;
const MAX_UNIT_BYTES = 5;

/**
 * The memory that a decoded message needs while its call runs: each text as a string and as bytes for the upstream, and
 * binary data.
 */
export function* weighMessage(message: Message, bodyBytes: number): Steps<number> {
  if (bodyBytes <= SMALL_BODY_BYTES) return SMALL_FACTOR * bodyBytes;
  const rest: unknown[] = [message];
  // The bytes of a binary message refer to its body.
  const buffers = new Set<ArrayBufferLike>();
  let bytes = 0;
  let values = 0;
  for (let value = rest.pop(); value !== undefined; value = rest.pop()) {
    values += typeof value === "string" ? 1 + value.length / UNITS_PER_VALUE : 1;
    if (values >= STEP_VALUES) {
      values = 0;
      yield;
    }
    if (typeof value === "string") bytes += weightOfText(value);
    else if (value instanceof Uint8Array) {
      if (!buffers.has(value.buffer)) bytes += value.buffer.byteLength;
      buffers.add(value.buffer);
    } else if (Array.isArray(value)) {
      bytes += OBJECT_BYTES + MEMBER_BYTES * value.length;
      for (const item of value) if (isWeighed(item)) rest.push(item);
    } else {
      const json = heldJsonOf(value as object);
      if (json !== undefined) {
        if (isWeighed(json)) rest.push(json);
        continue;
      }
      const fields = value as Readonly<Record<string, unknown>>;
      bytes += OBJECT_BYTES;
      for (const name in fields) {
        if (name === "$typeName") continue;
        bytes += MEMBER_BYTES;
        if (isWeighed(fields[name])) rest.push(fields[name]);
      }
    }
  }
  return bytes;
}

/** V8 stores a string with one byte for each unit, or with two if one of them is not Latin-1. */
function weightOfText(text: string): number {
  const { length } = text;
  if (length < MEASURED_UNITS) return STRING_BYTES + MAX_UNIT_BYTES * length;
  const utf8 = Buffer.byteLength(text);
  return STRING_BYTES + utf8 + (utf8 === length ? length : 2 * length);
}

/** Numbers and booleans are counted with the object or the list that contains them. */
function isWeighed(value: unknown): boolean {
  return (typeof value === "object" && value !== null) || (typeof value === "string" && value !== "");
}
