import { create, type DescField, type DescMessage, type Message, mergeFromBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { holdsPlainObject } from "../../rules/plain-values.ts";
import type { Steps } from "../steps.ts";
import { checkMessage } from "./check-message.ts";
import { Cursor, malformed } from "./cursor.ts";
import { JsonValues } from "./json-values.ts";

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

  *#readValue(
    { inner }: OwnField,
    before: Message | undefined,
    start: number,
    end: number,
    path: string,
  ): Steps<unknown> {
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
    if (containsObjects(message))
      throw new Error(`${field}: maps of messages with objects are not supported`);
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
