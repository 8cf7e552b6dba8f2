import { create, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { CreateKeyRequestSchema } from "../../gen/vx/v1/key_pb.js";
import { readBinary } from "../../src/codec/binary/read-message.ts";
import { readJsonMessage } from "../../src/codec/decode.ts";
import { Readers } from "../../src/codec/json/reader.ts";
import type { Steps } from "../../src/codec/steps.ts";

const readers = new Readers("ignore");

/** The number of pauses until the text is decoded or rejected. A step of 262,144 units takes 1 to 2 ms. */
function rests(steps: Steps<Message>): number {
  for (let count = 0; ; count++) {
    try {
      if (steps.next().done) return count;
    } catch {
      return count;
    }
  }
}

const readJson = (desc: DescMessage, text: string) => rests(readJsonMessage(readers.of(desc), Buffer.from(text)));

const generate = (content: string, count: number) =>
  `{"model":"m","messages":[${Array(count).fill(`{"role":"user","content":"${content}"}`).join(",")}]}`;

const MB = 1_000_000;

describe("other calls run while 3 MB of JSON are decoded:", () => {
  test.each([
    ["four strings of quotes", generate('\\"'.repeat(400_000), 4)],
    ["a string of escaped surrogate pairs", generate("\\ud83d\\ude00".repeat(400_000), 1)],
    ["an unknown field", `{"later":"${"x".repeat(3 * MB)}"}`],
    ["an unknown field of quotes", `{"later":"${'\\"'.repeat(1.5 * MB)}"}`],
    ["an unknown list field", `{"later":${JSON.stringify(Array(9_000).fill("\n".repeat(150)))}}`],
    ["unknown names", `{${Array.from({ length: 9_000 }, (_, i) => `"${i}${"x".repeat(300)}":1`).join(",")}}`],
  ])("%s", (_name, text) => {
    expect(readJson(GenerateRequestSchema, text)).toBeGreaterThan(9);
  });

  test("eight strings of 400,000 characters", () => {
    expect(readJson(GenerateRequestSchema, generate("x".repeat(400_000), 8))).toBeGreaterThan(6);
  });

  test("a string for a timestamp", () => {
    expect(readJson(CreateKeyRequestSchema, `{"expires_at":"${"\\n".repeat(1.5 * MB)}"}`)).toBeGreaterThan(9);
  });
});

// A whole text has 11 steps for each 3 MB.
describe("rejected after a few steps is", () => {
  test.each([
    ["a text without end", generate("\\n".repeat(15 * MB), 1), 50],
    ["a name without end", `{"${"x".repeat(3 * MB)}":1}`, 5],
    ["digits without end", `{"max_tokens":${"1".repeat(3 * MB)}}`, 5],
    ["space without end", `{"model":${" ".repeat(3 * MB)}"m"}`, 5],
    ["a list without end", `{"later":[${"1,".repeat(15 * MB)}1]}`, 50],
    ["a number as a text without end", `{"max_tokens":"${"1".repeat(3 * MB)}"}`, 5],
  ])("%s", (_name, text, steps) => {
    expect(readJson(GenerateRequestSchema, text)).toBeLessThan(steps);
  });
});

test("other calls run while a binary message of 3 MB is decoded", () => {
  const messages = Array.from({ length: 8 }, () => ({ role: "user", content: "x".repeat(400_000) }));
  const bytes = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { model: "m", messages }));
  expect(rests(readBinary(GenerateRequestSchema, bytes))).toBeGreaterThan(7);
});
