import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { readBinary } from "../../src/codec/binary/read-message.ts";
import { finish } from "../../src/codec/steps.ts";
import { testFile } from "../rest/descriptors.ts";
import { everything } from "./messages.ts";

const hex = (desc: DescMessage, message: Message) => Buffer.from(toBinary(desc, message)).toString("hex");

test("a message in many large parts equals the message in one part", () => {
  const long = "ä😀".repeat(60_000);
  const messages = Array.from({ length: 7 }, (_, i) => ({ role: "user", content: `${i}${long}` }));
  const whole = create(GenerateRequestSchema, { model: "m", messages, maxTokens: 5, stop: ["a", "b"] });
  const bytes = toBinary(GenerateRequestSchema, whole);
  const steps = readBinary(GenerateRequestSchema, bytes);
  let rests = 0;
  let step = steps.next();
  for (; !step.done; step = steps.next()) rests++;
  expect(rests).toBeGreaterThanOrEqual(7);
  expect(step.value).toEqual(whole);
});

test("large halves of one message inside another are merged", () => {
  const tree = everything.message("Tree");
  const half = (name: string) => toBinary(tree, create(tree, { left: { name, children: [{}] } } as never));
  const bytes = Buffer.concat([half("a".repeat(300_000)), half("b".repeat(300_000))]);
  expect(hex(tree, finish(readBinary(tree, bytes)))).toBe(hex(tree, fromBinary(tree, bytes)));
});

describe("values of an object with fields that encoders do not write are refused:", () => {
  const field = (number: number, content: Buffer) => Buffer.concat([varint((number << 3) | 2), varint(content.length), content]);
  /** A field without content, many times. */
  const empty = (number: number) =>
    Buffer.from(
      Array(1_000)
        .fill([(number << 3) | 2, 0])
        .flat(),
    );
  const text = field(2, field(3, Buffer.from("x")));
  const desc = everything.message("Plain");
  const number = desc.fields.find(({ name }) => name === "plain_struct")?.number ?? 0;

  test.each([
    ["names of one member", field(5, field(1, Buffer.concat([empty(1), text])))],
    ["unknown fields of an object", field(5, empty(2))],
    ["unknown fields of a list", field(6, empty(2))],
  ])("%s", (_, value) => {
    const entry = Buffer.concat([field(1, Buffer.from("a")), field(2, value)]);
    expect(() => finish(readBinary(desc, field(number, field(1, entry))))).toThrow(/not valid/);
  });
});

test("an object that is set twice is refused", () => {
  const desc = everything.message("Plain");
  const once = toBinary(desc, create(desc, { plainStruct: { a: 1 } } as never));
  expect(hex(desc, finish(readBinary(desc, once)))).toBe(Buffer.from(once).toString("hex"));
  expect(() => finish(readBinary(desc, Buffer.concat([once, once])))).toThrow(/not valid/);
});

test("a map of messages with objects is refused", () => {
  const desc = testFile({ Item: ["google.protobuf.Struct object"], Items: ["map<string,Item> items"] }).message("Items");
  expect(() => finish(readBinary(desc, new Uint8Array()))).toThrow(/maps of messages with objects/);
});

function varint(number: number): Buffer {
  const bytes: number[] = [];
  for (let rest = number; rest > 0 || bytes.length === 0; rest >>>= 7) {
    bytes.push((rest & 127) | (rest > 127 ? 128 : 0));
  }
  return Buffer.from(bytes);
}

test("a group of an unknown field is skipped, with the groups in it", () => {
  const inner = [0x0b, 0x0a, 0x01, 0x61, 0x0c];
  const group = [0xfb, 0x07, ...inner, 0x08, 0x01, 0xfc, 0x07];
  const once = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { model: "m" }));
  const read = finish(readBinary(GenerateRequestSchema, Buffer.concat([Buffer.from(group), once])));
  expect(hex(GenerateRequestSchema, read)).toBe(Buffer.from(once).toString("hex"));
  const wrongEnd = [0xfb, 0x07, 0x0c];
  expect(() => finish(readBinary(GenerateRequestSchema, Buffer.from(wrongEnd)))).toThrow(/not valid/);
});
