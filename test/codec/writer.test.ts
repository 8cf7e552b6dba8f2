import {
  create,
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { hasOwnNull, isWrapper } from "../../src/codec/json/well-known.ts";
import { writerOf } from "../../src/codec/json/writer.ts";

import { omitsUnset } from "../../src/rules/policy.ts";

import { testFile } from "../rest/descriptors.ts";
import { runs } from "../support/runs.ts";
import { anyMessage } from "./any-message.ts";
import { Digits, type ExactJson, parseExact } from "./exact-json.ts";
import { messageTypes, testTypes } from "./messages.ts";

const INT64 = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

describe.each([...messageTypes, ...testTypes])("$typeName", (desc) => {
  test("is written as canonical ProtoJSON, except for 64-bit integers and absent fields", () => {
    fc.assert(
      fc.property(anyMessage(desc), (message) => {
        const printed = parseExact(writerOf(desc)(message));
        const canonical = toJson(desc, message, { alwaysEmitImplicit: true, useProtoFieldName: true });
        expect(printed).toEqual(expected(desc, message, canonical));
      }),
      { numRuns: runs(15) },
    );
  });
});

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
      define(
        result,
        String(key),
        expectedElement(field, item, (canonical as Record<string, JsonValue>)[String(key)] as JsonValue),
      );
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
  return (
    /^google\.protobuf\.(Timestamp|Duration|FieldMask|Struct|Value|ListValue|Any)$/.test(desc.typeName) ||
    isWrapper(desc)
  );
}

function define(object: Record<string, ExactJson>, name: string, value: ExactJson): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

test("a message with the option omit_unset leaves out its unset fields with presence", () => {
  const messages = {
    Inner: ["string name"],
    Event: [
      "string type",
      "optional int32 index",
      "Inner inner",
      "repeated string list",
      "optional string text",
    ],
  };
  const desc = testFile(messages, {}, Surface.UNSPECIFIED, { omitsUnset: "Event" }).message("Event");
  const write = (init: object) => writerOf(desc)(create(desc, init as never));
  expect(write({ type: "a" })).toBe('{"type":"a","list":[]}');
  expect(write({ index: 0, text: "", inner: {} })).toBe(
    '{"type":"","index":0,"inner":{"name":""},"list":[],"text":""}',
  );
  const usual = testFile(messages).message("Event");
  expect(writerOf(usual)(create(usual))).toBe('{"type":"","index":null,"inner":null,"list":[],"text":null}');
});
