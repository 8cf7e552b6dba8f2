import {
  create,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CreateChatCompletionRequestSchema as Chat, type CreateChatCompletionRequest } from "../../gen/vx/openai/v1/chat_pb.js";
import { GenerateRequestSchema as Generate, type GenerateRequest, ToolSchema } from "../../gen/vx/v1/generate_pb.js";
import { readBinary } from "../../src/codec/binary/read-message.ts";
import { readJsonMessage } from "../../src/codec/decode.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import { finish, type Steps } from "../../src/codec/steps.ts";
import { jsonOf } from "../../src/rules/untyped-values.ts";
import { runs } from "../support/runs.ts";

const reader = new Readers("ignore").of(Chat);

/** Both ways to read a value: a google.protobuf.Value from JSON, and a member of a google.protobuf.Struct from binary. */
const forms = [
  {
    name: "JSON",
    read: (tools: JsonValue): Steps<Message> => readJsonMessage(reader, Buffer.from(JSON.stringify({ tools }))),
    valueIn: (message: Message) => {
      const { tools } = message as CreateChatCompletionRequest;
      return tools === undefined ? undefined : (jsonOf(tools) as JsonValue);
    },
  },
  {
    name: "binary",
    read: (value: JsonValue): Steps<Message> =>
      readBinary(Generate, toBinary(Generate, create(Generate, { tools: [{ parameters: { value } }] }))),
    valueIn: (message: Message) => ((message as GenerateRequest).tools[0] as { parameters: JsonObject }).parameters.value,
  },
] as const;

/** Counts how often reading let other work run. */
function rests(steps: Steps<Message>): { count: number; message: Message } {
  for (let count = 0; ; count++) {
    const step = steps.next();
    if (step.done) return { count, message: step.value };
  }
}

type Thrown = Error & { field?: string; fields?: { field: string }[] };

describe.each(forms)("an untyped value, from $name,", ({ read, valueIn }) => {
  test("equals the value that was sent", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (any) => {
        // JSON.stringify writes -0 as 0.
        const value = JSON.parse(JSON.stringify(any)) as JsonValue;
        expect(valueIn(finish(read(value)))).toEqual(value);
      }),
      { numRuns: runs(300) },
    );
  });

  test.each([
    ["a list", Array(65_535).fill(true)],
    ["lists in a list", Array(65_535).fill([])],
    ["an object", Object.fromEntries(Array.from({ length: 65_535 }, (_, i) => [`k${i}`, 1]))],
  ])("can have at most 65,536 values, read in steps: %s", (_name, value) => {
    const { count, message } = rests(read(value));
    expect(JSON.stringify(valueIn(message))).toBe(JSON.stringify(value));
    expect(count).toBeGreaterThanOrEqual(7);
    const more = Array.isArray(value) ? [...value, true] : { ...value, more: 1 };
    // The error names the field of the request, not a path in Value such as "tools.list_value.values[3]".
    const isNamed = ({ message, field, fields }: Thrown) =>
      /at most 65536 values/.test(message) && /^tools(\[0\]\.parameters)?$/.test(field ?? fields?.[0]?.field ?? "");
    expect(() => finish(read(more))).toThrow(expect.toSatisfy(isNamed));
  });

  test("can have an image of 20 MiB in base64, read in steps", () => {
    const image = `data:image/jpeg;base64,${"/9j/".repeat(6_990_507)}`;
    const { count, message } = rests(read(image));
    expect(valueIn(message) === image).toBe(true);
    expect(count).toBeGreaterThanOrEqual(26);
  });

  test("keeps every character of a text that is read in parts", () => {
    const text = "ä€\u{1f600}".repeat(100_000);
    expect(valueIn(finish(read([text])))).toEqual([text]);
  });

  test("is decoded in steps when it is large", () => {
    const value = Array(5).fill("\u{1f600}".repeat(400_000));
    const { count, message } = rests(read(value));
    expect(count).toBeGreaterThan(3);
    expect(valueIn(message)).toEqual(value);
  });

  test("is rejected when it is nested too deeply", () => {
    const nested = (depth: number): JsonValue => (depth === 0 ? [] : [nested(depth - 1)]);
    expect(() => finish(read(nested(64)))).toThrow(/levels of objects and lists|not valid protobuf/);
  });

  test("can have the names of Object.prototype", () => {
    const value = JSON.parse('{"__proto__":{"polluted":1},"constructor":2}') as JsonValue;
    const fields = valueIn(finish(read(value)));
    expect(Object.keys(fields as object)).toEqual(["__proto__", "constructor"]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(fields)).toBe(Object.prototype);
  });
});

test("the library reads an untyped value from JSON like one of its own messages", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (any) => {
      const value = JSON.parse(JSON.stringify(any)) as JsonValue;
      const bytes = Buffer.from(JSON.stringify({ tools: value }));
      const { tools } = finish(readJsonMessage(reader, bytes)) as CreateChatCompletionRequest;
      expect(tools && toJson(ValueSchema, tools)).toEqual(value);
      expect(toBinary(Chat, create(Chat, { ...(tools && { tools }) }))).toEqual(
        toBinary(Chat, create(Chat, { tools: fromJson(ValueSchema, value) })),
      );
    }),
    { numRuns: runs(300) },
  );
});

test("the limit applies to the values of all fields together", () => {
  const many = Array(32_768).fill(1);
  const text = JSON.stringify({ tools: many, functions: many });
  expect(() => finish(readJsonMessage(reader, Buffer.from(text)))).toThrow(expect.objectContaining({ field: "functions" }));
});

describe("a binary value is rejected if", () => {
  const field = (number: number, content: number[]) => [(number << 3) | 2, content.length, ...content];
  const numberOf = (desc: DescMessage, name: string) => desc.fields.find((one) => one.name === name)?.number ?? 0;
  /** Reads a member of the object in the only tool. */
  const read = (value: number[]) => {
    const entry = [...field(1, [0x61]), ...field(2, value)];
    const tool = field(numberOf(ToolSchema, "parameters"), field(1, entry));
    const bytes = Uint8Array.from(field(numberOf(Generate, "tools"), tool));
    return (finish(readBinary(Generate, bytes)) as GenerateRequest).tools[0]?.parameters?.a;
  };

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
    expect([0x08, 0x20, 0x2a].map((tag) => read([tag, 0]))).toEqual([null, false, {}]);
  });
});
