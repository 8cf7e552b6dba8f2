import {
  create,
  type DescField,
  type DescMessage,
  type JsonWriteOptions,
  type Message,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { nextTurn } from "../domain/fairness.ts";
import { isLongList, itemsOf } from "./json/writer.ts";

export type Parts = Generator<string> | Generator<Uint8Array>;

/** The binary form of a message, in parts: each item of a long list is one. */
export function* binaryParts(desc: DescMessage, message: Message): Generator<Uint8Array> {
  for (const { parts } of dividedFieldsOf(desc, message)) for (const part of parts) yield toBinary(desc, part);
}

/** The same as ProtoJSON. */
export function* protoJsonParts(desc: DescMessage, message: Message, options: Partial<JsonWriteOptions>): Generator<string> {
  let separator = "{";
  for (const { field, isLong, parts } of dividedFieldsOf(desc, message)) {
    const name = `${JSON.stringify(field.jsonName)}:[`;
    if (isLong) yield separator + name;
    const [start, end] = isLong ? [1 + name.length, -2] : [1, -1];
    if (isLong) separator = "";
    for (const part of parts) {
      yield separator + toJsonString(desc, part, options).slice(start, end);
      separator = ",";
    }
    if (isLong) yield "]";
  }
  yield "}";
}

/** The fields that are set, in the order of their numbers, each as messages that together have the same form as the field. */
function* dividedFieldsOf(desc: DescMessage, message: Message) {
  const whole = reflect(desc, message, false);
  for (const field of whole.sortedFields) {
    if (!whole.isSet(field)) continue;
    const isLong = isLongList(field, message);
    yield { field, isLong, parts: isLong ? itemsAlone(desc, field, message) : [alone(whole, field)] };
  }
}

function* itemsAlone(desc: DescMessage, field: DescField, message: Message): Generator<Message> {
  for (const item of itemsOf(field, message)) yield create(desc, { [field.localName]: [item] });
}

function alone(whole: ReflectMessage, field: DescField): Message {
  const one = reflect(whole.desc, undefined, false);
  one.set(field, whole.get(field));
  return one.message;
}

/** Encoding this much takes one to two milliseconds. */
const PIECE_LENGTH = 65_536;

/** Joins parts to pieces of a size that is worth sending, in turns of the event loop. */
export async function* piecesOf(parts: Parts): AsyncGenerator<string | Buffer> {
  let gathered: (string | Uint8Array)[] = [];
  let length = 0;
  for (const part of parts) {
    gathered.push(part);
    length += part.length;
    if (length < PIECE_LENGTH) continue;
    yield joined(gathered);
    gathered = [];
    length = 0;
    await nextTurn();
  }
  if (length > 0) yield joined(gathered);
}

/** A message up to this length is sent whole. */
const MAX_WHOLE_LENGTH = 262_144;

/** All parts together; undefined if they are too long to be in memory as a whole. */
export async function joinShort(parts: Parts): Promise<Buffer | undefined> {
  const pieces: (string | Buffer)[] = [];
  let length = 0;
  for await (const piece of piecesOf(parts)) {
    pieces.push(piece);
    length += piece.length;
    if (length > MAX_WHOLE_LENGTH) return undefined;
  }
  return Buffer.from(joined(pieces));
}

export async function lengthOf(parts: Parts): Promise<number> {
  let bytes = 0;
  for await (const piece of piecesOf(parts)) bytes += Buffer.byteLength(piece);
  return bytes;
}

function joined(parts: readonly (string | Uint8Array)[]): string | Buffer {
  return typeof parts[0] === "string" ? parts.join("") : Buffer.concat(parts as readonly Uint8Array[]);
}
