import { create, fromJson, type JsonValue, type Message, toBinary, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CreateChatCompletionRequestSchema as Chat,
  type CreateChatCompletionRequest,
} from "../../gen/vx/openai/v1/chat_pb.js";
import { readBinary } from "../../src/codec/binary/read-message.ts";
import { readJsonMessage } from "../../src/codec/decode.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { finish, type Steps } from "../../src/codec/steps.ts";
import { jsonOf } from "../../src/rules/plain-values.ts";
import { runs } from "../support/runs.ts";

const reader = new Readers("ignore").of(Chat);

/** Reads the untyped field from each form of a request. */
const forms = [
  {
    name: "JSON",
    *read(tools: JsonValue): Steps<Message> {
      return yield* readJsonMessage(reader, Buffer.from(JSON.stringify({ tools })));
    },
  },
  {
    name: "binary",
    *read(tools: JsonValue): Steps<Message> {
      return yield* readBinary(Chat, toBinary(Chat, create(Chat, { tools: fromJson(ValueSchema, tools) })));
    },
  },
] as const;

function rests(steps: Steps<Message>): { count: number; tools: JsonValue } {
  for (let count = 0; ; count++) {
    const step = steps.next();
    if (!step.done) continue;
    const { tools } = step.value as CreateChatCompletionRequest;
    return { count, tools: tools === undefined ? null : (jsonOf(tools) as JsonValue) };
  }
}

/** The error must name the field of the request, not a path in Value such as "tools.list_value.values[3]". */
function namesTools(error: { field?: string; fields?: { field: string }[] }): boolean {
  return (error.field ?? error.fields?.[0]?.field) === "tools";
}

describe.each(forms)("an untyped value, from $name,", ({ read }) => {
  test("equals the value that was sent", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (any) => {
        // JSON.stringify writes -0 as 0.
        const value = JSON.parse(JSON.stringify(any)) as JsonValue;
        const { tools } = finish(read(value)) as CreateChatCompletionRequest;
        expect(tools && jsonOf(tools)).toEqual(value);
        // The library reads it like one of its own messages.
        expect(tools && toJson(ValueSchema, tools)).toEqual(value);
        expect(toBinary(Chat, create(Chat, { ...(tools && { tools }) }))).toEqual(
          toBinary(Chat, create(Chat, { tools: fromJson(ValueSchema, value) })),
        );
      }),
      { numRuns: runs(300) },
    );
  });

  test.each([
    ["a list", Array(65_535).fill(true)],
    ["lists in a list", Array(65_535).fill([])],
    ["an object", Object.fromEntries(Array.from({ length: 65_535 }, (_, i) => [`k${i}`, 1]))],
  ])("can have at most 65,536 values, read in steps: %s", (_name, value) => {
    const { count, tools } = rests(read(value));
    expect(JSON.stringify(tools)).toBe(JSON.stringify(value));
    expect(count).toBeGreaterThanOrEqual(7);
    const more = Array.isArray(value) ? [...value, true] : { ...value, more: 1 };
    expect(() => finish(read(more))).toThrow(/at most 65536 values/);
    expect(() => finish(read(more))).toThrow(expect.toSatisfy(namesTools));
  });

  test("can have an image of 20 MiB in base64, read in steps", () => {
    const image = `data:image/jpeg;base64,${"/9j/".repeat(6_990_507)}`;
    const { count, tools } = rests(read(image));
    expect(tools === image).toBe(true);
    expect(count).toBeGreaterThanOrEqual(26);
  });

  test("keeps every character of a text that is read in parts", () => {
    const text = "ä€\u{1f600}".repeat(300_000);
    expect(rests(read([text])).tools).toEqual([text]);
  });

  test("is decoded in steps when it is large", () => {
    const value = Array(20).fill("\u{1f600}".repeat(400_000));
    const { count, tools } = rests(read(value));
    expect(count).toBeGreaterThan(18);
    expect(tools).toEqual(value);
  });

  test("is rejected when it is nested too deeply", () => {
    const nested = (depth: number): JsonValue => (depth === 0 ? [] : [nested(depth - 1)]);
    expect(() => finish(read(nested(64)))).toThrow(/levels of objects and lists|not valid protobuf/);
  });

  test("can have the names of Object.prototype", () => {
    const value = JSON.parse('{"__proto__":{"polluted":1},"constructor":2}') as JsonValue;
    const { tools } = finish(read(value)) as CreateChatCompletionRequest;
    const fields = tools === undefined ? {} : jsonOf(tools);
    expect(Object.keys(fields as object)).toEqual(["__proto__", "constructor"]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(fields)).toBe(Object.prototype);
  });
});

test("the limit applies to the values of all fields together", () => {
  const many = Array(32_768).fill(1);
  const text = JSON.stringify({ tools: many, functions: many });
  expect(() => finish(readJsonMessage(reader, Buffer.from(text)))).toThrow(
    expect.objectContaining({ field: "functions" }),
  );
});

describe("a binary value is rejected if", () => {
  const field = Chat.fields.find(({ name }) => name === "tools")?.number ?? 0;
  const read = (value: number[]) =>
    finish(readBinary(Chat, Uint8Array.from([(field << 3) | 2, value.length, ...value])));

  test.each([
    ["it has no value", []],
    ["it has two values", [0x20, 1, 0x20, 1]],
    ["it has a field that is not known", [0x38, 1]],
    ["it is another null", [0x08, 1]],
    ["its type does not match", [0x1d, 1, 1, 1, 1]],
    ["its text is not UTF-8", [0x1a, 1, 0xff]],
    ["its text ends outside of it", [0x1a, 5, 0x61]],
    ["it is not a finite number", [0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f]],
    ["an entry of its object has no value", [0x2a, 5, 0x0a, 3, 0x0a, 1, 0x61]],
    ["an item of its list is not a message", [0x32, 2, 0x08, 1]],
  ])("%s", (_name, value) => {
    expect(() => read(value)).toThrow(expect.objectContaining({ reason: "invalid_argument" }));
  });

  test("a null, a false and an empty object are values", () => {
    const values = [
      [0x08, 0],
      [0x20, 0],
      [0x2a, 0],
    ].map(read) as CreateChatCompletionRequest[];
    expect(values.map(({ tools }) => tools && jsonOf(tools))).toEqual([null, false, {}]);
  });
});
