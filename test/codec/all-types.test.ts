import {
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
  toBinary,
  toJson,
  toJsonString,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readBinary } from "../../src/codec/binary/read-message.ts";
import { JsonScanner } from "../../src/codec/json/json-scanner.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { hasOwnNull, isWrapper } from "../../src/codec/json/well-known.ts";
import { hasLongList, writeInParts, writerOf } from "../../src/codec/json/writer.ts";
import { binaryParts, protoJsonParts } from "../../src/codec/message-parts.ts";
import { finish } from "../../src/codec/steps.ts";
import { omitsUnset } from "../../src/rules/policy.ts";
import { runs } from "../support/runs.ts";
import { anyMessage } from "./any-message.ts";
import { messageTypes, testTypes } from "./messages.ts";

/** A JSON value whose numbers keep their original digits. */
type ExactJson = null | boolean | string | Digits | ExactJson[] | { [name: string]: ExactJson };

class Digits {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON.parse without loss of digits: each number is read from its source text. */
function parseExact(text: string): ExactJson {
  const keepDigits = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? new Digits(context?.source ?? "") : value;
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown) as ExactJson;
}

const readers = new Readers("refuse");
const INT64 = new Set([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64]);

/** The bytes that change in an encoded message. */
const changes = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 });
const form = fc.record({ useProtoFieldName: fc.boolean(), alwaysEmitImplicit: fc.boolean() });

// The test types have all kinds of fields, so most random values are theirs.
test.each([
  ...messageTypes.map((desc) => [desc.typeName, desc, 1] as const),
  ...testTypes.map((desc) => [desc.typeName, desc, 12] as const),
])("%s is read and written in every form as the library does it", (_, desc, count) => {
  const property = fc.property(anyMessage(desc), changes, form, (message, changed, jsonForm) => {
    const binary = toBinary(desc, message);
    // Bytes distinguish NaN and negative zero.
    const hex = hexOf(desc, message);
    expect(hexOf(desc, finish(readBinary(desc, binary))), "binary").toBe(hexOf(desc, plainly(desc, binary)));
    checkChanged(desc, binary, changed);
    const written = writerOf(desc)(message);
    const canonical = toJson(desc, message, { alwaysEmitImplicit: true, useProtoFieldName: true });
    expect(parseExact(written), "REST").toEqual(expected(desc, message, canonical));
    expect(hexOf(desc, readJson(desc, written)), "REST, read back").toBe(hex);
    const text = toJsonString(desc, message, jsonForm);
    expect(hexOf(desc, readJson(desc, text)), "ProtoJSON").toBe(hexOf(desc, fromJson(desc, JSON.parse(text))));
    checkParts(desc, message);
  });
  fc.assert(property, { numRuns: runs(count) });
});

function hexOf(desc: DescMessage, message: Message): string {
  return Buffer.from(toBinary(desc, message)).toString("hex");
}

function plainly(desc: DescMessage, bytes: Uint8Array): Message {
  return fromBinary(desc, bytes, { readUnknownFields: false });
}

function readJson(desc: DescMessage, text: string): Message {
  const scanner = new JsonScanner(Buffer.from(text));
  const message = finish(readers.of(desc)(scanner, ""));
  scanner.end();
  return message;
}

/** Changed bytes are rejected, or decoded as the library decodes them. */
function checkChanged(desc: DescMessage, binary: Uint8Array, changed: readonly (readonly [number, number])[]): void {
  const bytes = binary.slice();
  for (const [at, byte] of changed) if (bytes.length > 0) bytes[at % bytes.length] = byte;
  let read: Message;
  try {
    read = finish(readBinary(desc, bytes));
  } catch (error) {
    expect(error).toMatchObject({ reason: "invalid_argument" });
    return;
  }
  expect(read, "changed bytes").toEqual(plainly(desc, bytes));
}

/** The parts of a message with long lists of messages are its whole form. */
function checkParts(desc: DescMessage, message: Message): void {
  const fields = message as unknown as Record<string, unknown[]>;
  for (const { fieldKind, localName, message: item } of desc.fields) {
    const items = fields[localName];
    if (fieldKind !== "list" || !item || !items?.length) continue;
    fields[localName] = Array.from({ length: 101 }, (_, i) => items[i % items.length]);
  }
  if (desc.typeName.startsWith("google.protobuf.") || !hasLongList(desc, message)) return;
  const write = writerOf(desc);
  expect([...writeInParts(write, desc, message)].join("") === write(message), "parts of REST").toBe(true);
  expect(Buffer.concat([...binaryParts(desc, message)]).equals(toBinary(desc, message)), "binary parts").toBe(true);
  expect([...protoJsonParts(desc, message, {})].join("") === toJsonString(desc, message), "ProtoJSON").toBe(true);
}

/** Canonical ProtoJSON with the changes of REST: int64 as numbers, and null for absent fields outside oneofs. */
function expected(desc: DescMessage, message: Message, canonical: JsonValue): ExactJson {
  if (/^google\.protobuf\.U?Int64Value$/.test(desc.typeName)) return new Digits(canonical as string);
  if (hasOwnJson(desc)) return exact(canonical);
  const object = canonical as Record<string, JsonValue>;
  const result: Record<string, ExactJson> = {};
  for (const field of desc.fields) {
    const value = Object.hasOwn(object, field.name) ? object[field.name] : undefined;
    if (value === undefined) {
      if (field.oneof || hasOwnNull(field) || omitsUnset(desc)) continue;
      define(result, field.name, null);
    } else {
      define(result, field.name, expectedField(field, reflect(desc, message).get(field), value));
    }
  }
  return result;
}

function expectedField(field: DescField, value: unknown, canonical: JsonValue): ExactJson {
  if (field.fieldKind === "list") {
    const items = [...(value as Iterable<unknown>)];
    return (canonical as JsonValue[]).map((item, i) => expectedElement(field, items[i], item));
  }
  if (field.fieldKind === "map") {
    const result: Record<string, ExactJson> = {};
    for (const [key, item] of value as Iterable<[unknown, unknown]>) {
      const written = (canonical as Record<string, JsonValue>)[String(key)] as JsonValue;
      define(result, String(key), expectedElement(field, item, written));
    }
    return result;
  }
  return expectedElement(field, value, canonical);
}

function expectedElement(field: DescField, value: unknown, canonical: JsonValue): ExactJson {
  if (field.message) return expected(field.message, (value as { message: Message }).message, canonical);
  if (field.scalar !== undefined && INT64.has(field.scalar)) return new Digits(canonical as string);
  return exact(canonical);
}

/** Scalars and types with a special JSON form; JSON.stringify would lose the sign of zero. */
function exact(value: JsonValue): ExactJson {
  return Object.is(value, -0) ? new Digits("-0") : parseExact(JSON.stringify(value));
}

function hasOwnJson(desc: DescMessage): boolean {
  return /^google\.protobuf\.(Timestamp|Duration|FieldMask|Struct|Value|ListValue|Any)$/.test(desc.typeName) || isWrapper(desc);
}

function define(object: Record<string, ExactJson>, name: string, value: ExactJson): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
