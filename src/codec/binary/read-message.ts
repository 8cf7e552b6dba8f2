import { create, type DescField, type DescMessage, type Message, mergeFromBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
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
export function* readBinary(desc: DescMessage, bytes: Uint8Array): Generator<undefined, Message, undefined> {
  checkMessage(desc, bytes);
  const message = create(desc);
  yield* readInto(desc, message, bytes);
  return message;
}

function* readInto(desc: DescMessage, message: Message, bytes: Uint8Array): Generator<undefined, void> {
  if (bytes.length <= PART_BYTES) return merge(desc, message, bytes);
  const inners = new Map(desc.fields.filter(isMessage).map((field) => [field.number, field]));
  const cursor = new Cursor(bytes);
  let start = 0;
  while (!cursor.isAtEnd) {
    const before = cursor.at;
    const tag = cursor.uint32();
    const inner = inners.get(tag >>> 3);
    if (inner && (tag & 7) === WireType.LengthDelimited) {
      const length = cursor.uint32();
      if (length > PART_BYTES) {
        merge(desc, message, bytes.subarray(start, before));
        const part = bytes.subarray(cursor.at, cursor.endOf(length));
        yield* readInto(inner.message, innerMessage(message, inner), part);
        cursor.at = start = cursor.endOf(length);
        yield;
        continue;
      }
      cursor.at = cursor.endOf(length);
    } else {
      cursor.skip(tag & 7);
    }
    if (cursor.at - start > PART_BYTES) {
      merge(desc, message, bytes.subarray(start, cursor.at));
      start = cursor.at;
      yield;
    }
  }
  merge(desc, message, bytes.subarray(start));
}

function merge(desc: DescMessage, message: Message, bytes: Uint8Array): void {
  if (bytes.length === 0) return;
  try {
    mergeFromBinary(desc, message, bytes, OPTIONS);
  } catch {
    throw malformed();
  }
}

const HELD_AS_SUCH = new Set(["google.protobuf.Value", "google.protobuf.ListValue"]);

type MessageField = DescField & { readonly message: DescMessage };

/**
 * A list of messages, or a message that is stored as one; most well-known types are stored in another form.
 */
function isMessage(field: DescField): field is MessageField {
  if (field.fieldKind === "map" || !field.message) return false;
  const { typeName } = field.message;
  if (typeName === "google.protobuf.Struct") return field.parent.typeName === "google.protobuf.Value";
  return !typeName.startsWith("google.protobuf.") || HELD_AS_SUCH.has(typeName);
}

/**
 * Creates a new item of a list; otherwise returns the existing message, because a second one is merged into
 * the first.
 */
function innerMessage(message: Message, field: MessageField): Message {
  const holder = message as unknown as Record<string, unknown>;
  if (field.fieldKind === "list") {
    const item = create(field.message);
    (holder[field.localName] as Message[]).push(item);
    return item;
  }
  if (field.oneof) {
    const held = holder[field.oneof.localName] as { case: string | undefined; value?: Message };
    if (held.case === field.localName) return held.value as Message;
    const value = create(field.message);
    holder[field.oneof.localName] = { case: field.localName, value };
    return value;
  }
  const value = (holder[field.localName] as Message | undefined) ?? create(field.message);
  holder[field.localName] = value;
  return value;
}
