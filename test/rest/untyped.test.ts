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
    return { count, tools: tools === undefined ? null : toJson(ValueSchema, tools) };
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
        expect(tools).toEqual(fromJson(ValueSchema, value));
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    ["a list", Array(4_999).fill(true)],
    ["lists in a list", Array(4_999).fill([])],
    ["an object", Object.fromEntries(Array.from({ length: 4_999 }, (_, i) => [`k${i}`, 1]))],
  ])("can have at most 5,000 values: %s", (_name, value) => {
    expect(rests(read(value)).tools).toEqual(value);
    const more = Array.isArray(value) ? [...value, true] : { ...value, more: 1 };
    expect(() => finish(read(more))).toThrow(/at most 5000 values/);
    expect(() => finish(read(more))).toThrow(expect.toSatisfy(namesTools));
  });

  test("can have strings of 400,000 characters; a much longer one is rejected", () => {
    const text = "\u{1f600}".repeat(400_000);
    expect(rests(read(text)).tools).toBe(text);
    expect(() => finish(read(`${text}x`))).toThrow(/at most 400000 characters/);
    expect(() => finish(read([`${text}x`]))).toThrow(expect.toSatisfy(namesTools));
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
    const fields = tools?.kind.case === "structValue" ? tools.kind.value.fields : {};
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(fields)).toBe(Object.prototype);
  });
});

test("the limit applies to the values of all fields together", () => {
  const many = Array(2_500).fill(1);
  const text = JSON.stringify({ tools: many, functions: many });
  expect(() => finish(readJsonMessage(reader, Buffer.from(text)))).toThrow(
    expect.objectContaining({ field: "functions" }),
  );
});
