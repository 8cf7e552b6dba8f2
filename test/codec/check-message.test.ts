import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { CreateKeyRequestSchema } from "../../gen/vx/v1/key_pb.js";
import { checkMessage } from "../../src/codec/binary/check-message.ts";
import { everything } from "./messages.ts";

function refusal(desc: DescMessage, bytes: Uint8Array) {
  try {
    checkMessage(desc, bytes);
    return undefined;
  } catch (error) {
    return error as { reason: string; message: string; fields: { field: string }[] };
  }
}

const generate = (init: MessageInitShape<typeof GenerateRequestSchema>) =>
  refusal(GenerateRequestSchema, toBinary(GenerateRequestSchema, create(GenerateRequestSchema, init)));

describe("a violated limit of the .proto is rejected with the field name before decoding", () => {
  test.each([
    ["201 messages", { messages: Array(201).fill({}) }, "messages"],
    ["five stops", { stop: Array(5).fill("x") }, "stop"],
    ["a stop that cannot have 200 characters", { stop: ["x", "x".repeat(801)] }, "stop[1]"],
    ["a text that cannot have 400,000 characters", { messages: [{}, { content: "x".repeat(1_600_001) }] }, "messages[1].content"],
  ])("%s", (_name, init, field) => {
    expect(generate(init)).toMatchObject({ reason: "invalid_argument", fields: [{ field }] });
  });

  test.each([
    ["200 messages", { messages: Array(200).fill({}) }],
    ["400,000 characters of four bytes", { messages: [{ content: "\u{1f600}".repeat(400_000) }] }],
    ["four stops", { stop: Array(4).fill("\u{1f600}".repeat(200)) }],
  ])("%s pass", (_name, init) => {
    expect(generate(init)).toBeUndefined();
  });
});

test("millions of empty messages are rejected at the 201st: nothing after it is read", () => {
  // Each byte after the 201st message is malformed.
  const bytes = Buffer.alloc(1_000_000, 0xff);
  for (let at = 0; at < 201 * 2; at += 2) bytes.set([0x12, 0], at);
  expect(refusal(GenerateRequestSchema, bytes)).toMatchObject({ fields: [{ field: "messages" }] });
});

test("sixteen million unknown fields are rejected", () => {
  const bytes = Buffer.alloc(33_554_432);
  for (let at = 0; at < bytes.length; at += 2) bytes[at] = 0x78;
  expect(refusal(CreateKeyRequestSchema, bytes)?.message).toMatch(/more than 100000 values/);
});

test("more packed numbers than allowed values, and an incomplete last number, are rejected", () => {
  const lists = everything.message("Lists");
  const field = lists.fields.find(({ name }) => name === "list_of_int32")?.number as number;
  const tag = (field << 3) | 2;
  const head = [(tag & 0x7f) | 0x80, tag >> 7];
  const many = Buffer.concat([Buffer.from([...head, 0xc0, 0x9a, 0x0c]), Buffer.alloc(200_000, 1)]);
  expect(refusal(lists, many)?.message).toMatch(/more than 100000 values/);
  expect(refusal(lists, Buffer.from([...head, 2, 1, 0x80, 0x01]))?.message).toMatch(/not valid protobuf/);
});

test("64 levels of messages are accepted, 65 are rejected", () => {
  const tree = everything.message("Tree");
  const left = tree.fields.find(({ name }) => name === "left")?.number as number;
  const nested = (depth: number) => {
    let bytes = Buffer.alloc(0);
    for (let i = 0; i < depth; i++) {
      const head = bytes.length < 128 ? [bytes.length] : [(bytes.length & 0x7f) | 0x80, bytes.length >> 7];
      bytes = Buffer.concat([Buffer.from([(left << 3) | 2, ...head]), bytes]);
    }
    return bytes;
  };
  expect(refusal(tree, nested(64))).toBeUndefined();
  expect(refusal(tree, nested(65))).toMatchObject({ reason: "invalid_argument" });
});

test.each([
  ["a tag that does not end", [0x80]],
  ["a tag of six bytes", [0x80, 0x80, 0x80, 0x80, 0x80, 0x01]],
  ["field 0", [0x00, 0x00]],
  ["a group without an end", [0xfb, 0x07, 0x08, 0x01]],
  ["65 groups in groups", [...Array(65).fill([0xfb, 0x07]), ...Array(65).fill([0xfc, 0x07])].flat()],
  ["the end of a group", [0x0c]],
  ["a text that is a number", [0x08, 0x01]],
  ["a number that is a text", [0x1a, 0x01, 0x01]],
  ["a length beyond the end", [0x0a, 0x05, 0x61]],
  ["a length of 4 GiB", [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
  ["a number of eleven bytes", [0x18, ...Array(10).fill(0x80), 0x01]],
  ["a message whose field ends outside of it", [0x12, 0x02, 0x0a, 0x05, 1, 2, 3, 4, 5]],
])("%s is malformed", (_name, bytes) => {
  expect(refusal(GenerateRequestSchema, Buffer.from(bytes))?.message).toMatch(/not valid protobuf/);
});
