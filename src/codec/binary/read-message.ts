import { create, type DescField, type DescMessage, type Message, mergeFromBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { valueOfJson } from "../../rules/plain-values.ts";
import { isUntyped } from "../../rules/untyped-values.ts";
import { setOwn } from "../set-own.ts";
import type { Steps } from "../steps.ts";
import { checkMessage } from "./check-message.ts";
import { Cursor, malformed } from "./cursor.ts";
import { JsonValues } from "./json-values.ts";
import { defaultKeyOf, mapKeyOf, type OwnField, ownFieldsOf } from "./own-fields.ts";

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
    const { byNumber, hasJson } = ownFieldsOf(desc);
    if (end - first <= PART_BYTES && !hasJson) return this.#merge(desc, message, first, end);
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
    if (field.fieldKind === "map") return yield* this.#readEntry(own, holder, start, end, path + field.name);
    if (field.fieldKind === "list") {
      const list = holder[localName] as unknown[];
      const where = `${path}${field.name}[${list.length}]`;
      list.push(yield* this.#readValue(own, undefined, start, end, where));
      return;
    }
    const group = oneof && (holder[oneof.localName] as { case: string | undefined; value?: unknown });
    const before = group ? (group.case === localName ? group.value : undefined) : holder[localName];
    // A second message is merged into the first. Encoders write untyped values and objects only once.
    if (before !== undefined && !own.inner) throw malformed();
    const value = yield* this.#readValue(own, before as Message | undefined, start, end, path + field.name);
    if (oneof) holder[oneof.localName] = { case: localName, value };
    else holder[localName] = value;
  }

  *#readValue(
    { field, inner }: OwnField,
    before: Message | undefined,
    start: number,
    end: number,
    path: string,
  ): Steps<unknown> {
    if (inner) {
      const message = before ?? create(inner);
      yield* this.readInto(inner, message, start, end, `${path}.`);
      return message;
    }
    if (!isUntyped(field.message as DescMessage)) return yield* this.#json.object(start, end, path);
    return valueOfJson(yield* this.#json.value(start, end, path));
  }

  /** On the wire an entry of a map is a message with the key in field 1 and the value in field 2. */
  *#readEntry(own: OwnField, holder: Fields, start: number, end: number, path: string): Steps<void> {
    const field = own.field as DescField & { fieldKind: "map" };
    const cursor = new Cursor(this.#bytes, start, end);
    let key = defaultKeyOf(field);
    let value: unknown;
    while (!cursor.isAtEnd) {
      const tag = cursor.uint32();
      const content = cursor.at;
      cursor.skip(tag & 7);
      if (tag >>> 3 === 1) key = mapKeyOf(field, this.#bytes.subarray(content, cursor.at));
      if (tag >>> 3 !== 2) continue;
      const inside = new Cursor(this.#bytes, content, cursor.at);
      inside.uint32();
      value = yield* this.#readValue(own, undefined, inside.at, cursor.at, path);
    }
    if (value === undefined) value = yield* this.#readValue(own, undefined, end, end, path);
    setOwn(holder[field.localName] as Fields, key, value);
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
