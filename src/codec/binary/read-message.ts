import { TextDecoder } from "node:util";
import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  mergeFromBinary,
} from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { DomainError } from "../../domain/errors.ts";
import { holdsPlainObject, MAX_UNTYPED_VALUES, TOO_MANY_UNTYPED } from "../../rules/untyped-values.ts";
import { setOwn } from "../json/json-value-reader.ts";
import type { Steps } from "../steps.ts";
import { checkMessage } from "./check-message.ts";
import { Cursor, malformed } from "./cursor.ts";

/** Bytes decoded at once. */
const PART_BYTES = 262_144;

/** Callers may send fields of a later version; they are dropped. */
const OPTIONS = { readUnknownFields: false };

/**
 * Reads a binary message in parts, so that other calls run in between: merging the parts of a message in
 * order gives the same result as decoding it whole.
 */
export function* readBinary(desc: DescMessage, bytes: Uint8Array): Steps<Message> {
  checkMessage(desc, bytes);
  const message = create(desc);
  yield* new MessageReader(bytes).readInto(desc, message, 0, bytes.length, "");
  return message;
}

type Fields = Record<string, unknown>;

class MessageReader {
  readonly #bytes: Uint8Array;
  readonly #json: JsonValues;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#json = new JsonValues(bytes);
  }

  /** The path ends with a dot unless it is empty. */
  *readInto(desc: DescMessage, message: Message, first: number, end: number, path: string): Steps<void> {
    const { byNumber, hasObjects } = ownFieldsOf(desc);
    if (end - first <= PART_BYTES && !hasObjects) return this.#merge(desc, message, first, end);
    const cursor = new Cursor(this.#bytes, first, end);
    // The bytes from here on are not decoded yet.
    let start = first;
    while (!cursor.isAtEnd) {
      const before = cursor.at;
      const tag = cursor.uint32();
      const own = byNumber.get(tag >>> 3);
      if (!own || (tag & 7) !== WireType.LengthDelimited) cursor.skip(tag & 7);
      else {
        const length = cursor.uint32();
        const content = cursor.at;
        cursor.at = cursor.endOf(length);
        const isLarge = length > PART_BYTES;
        if (own.isAlways || isLarge) {
          this.#merge(desc, message, start, before);
          start = cursor.at;
          yield* this.#readField(own, message as unknown as Fields, content, start, path);
          if (isLarge) yield;
        }
      }
      if (cursor.at - start > PART_BYTES) {
        this.#merge(desc, message, start, cursor.at);
        start = cursor.at;
        yield;
      }
    }
    this.#merge(desc, message, start, end);
  }

  *#readField(own: OwnField, holder: Fields, start: number, end: number, path: string): Steps<void> {
    const { field } = own;
    const { localName, oneof } = field;
    if (field.fieldKind === "list") {
      const list = holder[localName] as unknown[];
      const where = `${path}${field.name}[${list.length}]`;
      list.push(yield* this.#readValue(own, undefined, start, end, where));
      return;
    }
    const group = oneof && (holder[oneof.localName] as { case: string | undefined; value?: unknown });
    const before = group ? (group.case === localName ? group.value : undefined) : holder[localName];
    // A second message is merged into the first. Encoders write objects only once.
    if (before !== undefined && !own.inner) throw malformed();
    const value = yield* this.#readValue(own, before as Message | undefined, start, end, path + field.name);
    if (oneof) holder[oneof.localName] = { case: localName, value };
    else holder[localName] = value;
  }

  *#readValue({ inner }: OwnField, before: Message | undefined, start: number, end: number, path: string): Steps<unknown> {
    if (!inner) return yield* this.#json.object(start, end, path);
    const message = before ?? create(inner);
    yield* this.readInto(inner, message, start, end, `${path}.`);
    return message;
  }

  #merge(desc: DescMessage, message: Message, start: number, end: number): void {
    if (start === end) return;
    try {
      mergeFromBinary(desc, message, this.#bytes.subarray(start, end), OPTIONS);
    } catch {
      throw malformed();
    }
  }
}

/** A field that the reader can decode itself, apart from the rest of its message. */
type OwnField = {
  readonly field: DescField;
  /** The type of its messages; undefined if it contains objects. */
  readonly inner: DescMessage | undefined;
  /** Whether it always decodes the field, because the library would create a message for each value of an object. */
  readonly isAlways: boolean;
};

type OwnFields = { readonly byNumber: ReadonlyMap<number, OwnField>; readonly hasObjects: boolean };

const known = new WeakMap<DescMessage, OwnFields>();

function ownFieldsOf(desc: DescMessage): OwnFields {
  let own = known.get(desc);
  if (!own) {
    const fields = desc.fields.flatMap((field) => ownField(field) ?? []);
    own = {
      byNumber: new Map(fields.map((one) => [one.field.number, one])),
      hasObjects: fields.some(({ isAlways }) => isAlways),
    };
    known.set(desc, own);
  }
  return own;
}

function ownField(field: DescField): OwnField | undefined {
  const { message } = field;
  if (!message) return undefined;
  if (field.fieldKind === "map") {
    // The library would decode the objects without their limits.
    if (containsObjects(message)) throw new Error(`${field}: maps of messages with objects are not supported`);
    return undefined;
  }
  if (holdsPlainObject(field)) return { field, inner: undefined, isAlways: true };
  // Most well-known types are not stored as messages.
  if (message.typeName.startsWith("google.protobuf.")) return undefined;
  return { field, inner: message, isAlways: containsObjects(message) };
}

function containsObjects(desc: DescMessage, above: readonly DescMessage[] = []): boolean {
  if (above.includes(desc)) return false;
  return desc.fields.some(
    (field) => holdsPlainObject(field) || (field.message && containsObjects(field.message, [...above, desc])),
  );
}

/** Levels of objects and lists, as in JSON. */
const MAX_DEPTH = 64;

/** Values read before other calls may run, and bytes of a string decoded at once: a few milliseconds of work. */
const STEP_VALUES = 2_048;
const TEXT_PART_BYTES = 1_048_576;

const STRICT = { fatal: true, ignoreBOM: true };
const UTF8 = new TextDecoder("utf-8", STRICT);

/** The members of google.protobuf.Value. */
const KIND = { null: 1, number: 2, string: 3, bool: 4, struct: 5, list: 6 } as const;
const WIRE_TYPES = [
  WireType.Varint,
  WireType.Bit64,
  WireType.LengthDelimited,
  WireType.Varint,
  WireType.LengthDelimited,
  WireType.LengthDelimited,
];

/** Reads the google.protobuf.Structs of one binary message as plain JSON, within the limits of all of them together. */
class JsonValues {
  readonly #bytes: Buffer;
  #count = 0;
  #restedAt = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** A google.protobuf.Struct; the path names its field in errors. */
  *object(start: number, end: number, path: string, depth = 0): Steps<JsonObject> {
    const object: JsonObject = {};
    for (const [at, entryEnd] of this.#items(start, end, depth + 1)) {
      if (this.#isDue()) yield;
      let name: string | undefined;
      let value: JsonValue | undefined;
      const entry = new Cursor(this.#bytes, at, entryEnd);
      while (!entry.isAtEnd) {
        const tag = entry.uint32();
        const from = lengthDelimited(entry, tag);
        const number = tag >>> 3;
        if (number === 1 && name === undefined) name = yield* this.#text(from, entry.at);
        else if (number === 2 && value === undefined) value = yield* this.#value(from, entry.at, path, depth + 1);
        else throw malformed();
      }
      if (value === undefined) throw DomainError.ofField(path, "must have a value for each name");
      setOwn(object, name ?? "", value);
    }
    return object;
  }

  *#value(start: number, end: number, path: string, depth: number): Steps<JsonValue> {
    if (++this.#count > MAX_UNTYPED_VALUES) throw DomainError.ofField(path, TOO_MANY_UNTYPED);
    const kind = this.#kindOf(start, end);
    if (kind === undefined) throw DomainError.ofField(path, "must have a value");
    const { number, at } = kind;
    switch (number) {
      case KIND.string:
        return yield* this.#text(at, kind.end);
      case KIND.struct:
        return yield* this.object(at, kind.end, path, depth);
      case KIND.list:
        return yield* this.#list(at, kind.end, path, depth + 1);
      case KIND.number:
        return this.#number(at, path);
      case KIND.bool:
        return this.#isNonzero(at, kind.end);
      default:
        if (this.#isNonzero(at, kind.end)) throw malformed();
        return null;
    }
  }

  *#list(start: number, end: number, path: string, depth: number): Steps<JsonValue[]> {
    const list: JsonValue[] = [];
    for (const [at, itemEnd] of this.#items(start, end, depth)) {
      if (this.#isDue()) yield;
      list.push(yield* this.#value(at, itemEnd, path, depth));
    }
    return list;
  }

  /**
   * The messages in field 1, of a Struct or a ListValue. Encoders write no other fields; a body full of them would
   * take long to step over.
   */
  *#items(start: number, end: number, depth: number): Generator<readonly [start: number, end: number], void> {
    if (depth > MAX_DEPTH) throw malformed();
    const cursor = new Cursor(this.#bytes, start, end);
    while (!cursor.isAtEnd) {
      const tag = cursor.uint32();
      const from = lengthDelimited(cursor, tag);
      if (tag >>> 3 !== 1) throw malformed();
      yield [from, cursor.at];
    }
  }

  /** The member of a Value that is set; encoders write exactly one. */
  #kindOf(start: number, end: number): { number: number; at: number; end: number } | undefined {
    let kind: { number: number; at: number; end: number } | undefined;
    const cursor = new Cursor(this.#bytes, start, end);
    while (!cursor.isAtEnd) {
      const tag = cursor.uint32();
      const number = tag >>> 3;
      if (kind || WIRE_TYPES[number - 1] !== (tag & 7)) throw malformed();
      const length = (tag & 7) === WireType.LengthDelimited ? cursor.uint32() : 0;
      const at = cursor.at;
      if ((tag & 7) === WireType.LengthDelimited) cursor.at = cursor.endOf(length);
      else cursor.skip(tag & 7);
      kind = { number, at, end: cursor.at };
    }
    return kind;
  }

  *#text(start: number, end: number): Steps<string> {
    if (end - start <= TEXT_PART_BYTES) return decodeUtf8(UTF8, this.#bytes.subarray(start, end), false);
    const decoder = new TextDecoder("utf-8", STRICT);
    const parts: string[] = [];
    for (let at = start; at < end; at += TEXT_PART_BYTES) {
      const partEnd = Math.min(at + TEXT_PART_BYTES, end);
      parts.push(decodeUtf8(decoder, this.#bytes.subarray(at, partEnd), partEnd < end));
      yield;
    }
    return parts.join("");
  }

  #number(at: number, path: string): number {
    const number = this.#bytes.readDoubleLE(at);
    if (!Number.isFinite(number)) throw DomainError.ofField(path, "must have only finite numbers");
    return number;
  }

  #isNonzero(start: number, end: number): boolean {
    return this.#bytes.subarray(start, end).some((byte) => (byte & 0x7f) !== 0);
  }

  #isDue(): boolean {
    if (this.#count - this.#restedAt < STEP_VALUES) return false;
    this.#restedAt = this.#count;
    return true;
  }
}

function decodeUtf8(decoder: TextDecoder, bytes: Uint8Array, stream: boolean): string {
  try {
    return decoder.decode(bytes, { stream });
  } catch {
    throw malformed();
  }
}

/** Steps over a text or message field, and returns the start of its content. */
function lengthDelimited(cursor: Cursor, tag: number): number {
  if ((tag & 7) !== WireType.LengthDelimited || tag >>> 3 === 0) throw malformed();
  const length = cursor.uint32();
  const start = cursor.at;
  cursor.at = cursor.endOf(length);
  return start;
}
