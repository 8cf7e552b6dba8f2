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

function* readJson(desc: DescMessage, text: string): Steps<Message> {
  return yield* readJsonMessage(readers.of(desc), Buffer.from(text));
}

const generate = (content: string, count: number) =>
  `{"model":"m","messages":[${Array(count).fill(`{"role":"user","content":"${content}"}`).join(",")}]}`;

describe("other calls run while 30 MB of JSON are decoded:", () => {
  test.each([
    ["40 strings of quotes", generate('\\"'.repeat(400_000), 40)],
    ["six strings of escaped surrogate pairs", generate("\\ud83d\\ude00".repeat(400_000), 6)],
    ["an unknown field", `{"later":"${"x".repeat(30_000_000)}"}`],
    ["an unknown field of quotes", `{"later":"${'\\"'.repeat(15_000_000)}"}`],
    [
      "an unknown list field",
      `{"later":[${Array(90_000)
        .fill(`"${"\\n".repeat(150)}"`)
        .join(",")}]}`,
    ],
    ["unknown names", `{${Array.from({ length: 90_000 }, (_, i) => `"${i}${"x".repeat(300)}":1`).join(",")}}`],
  ])("%s", (_name, text) => {
    expect(rests(readJson(GenerateRequestSchema, text))).toBeGreaterThan(100);
  });

  test("80 strings of 400,000 characters", () => {
    expect(rests(readJson(GenerateRequestSchema, generate("x".repeat(400_000), 80)))).toBeGreaterThan(78);
  });

  test("a string of 30 MB for a timestamp", () => {
    const text = `{"expires_at":"${"\\n".repeat(15_000_000)}"}`;
    expect(rests(readJson(CreateKeyRequestSchema, text))).toBeGreaterThan(100);
  });
});

describe("30 MB of JSON are rejected after a few steps:", () => {
  test.each([
    ["a text without end", generate("\\n".repeat(15_000_000), 1)],
    ["a name without end", `{"${"x".repeat(30_000_000)}":1}`],
    ["digits without end", `{"max_tokens":${"1".repeat(30_000_000)}}`],
    ["space without end", `{"model":${" ".repeat(30_000_000)}"m"}`],
    ["a list without end", `{"later":[${"1,".repeat(15_000_000)}1]}`],
    ["a number as a text without end", `{"max_tokens":"${"1".repeat(30_000_000)}"}`],
  ])("%s", (_name, text) => {
    expect(rests(readJson(GenerateRequestSchema, text))).toBeLessThan(50);
  });
});

test("other calls run while a binary message of 30 MB is decoded", () => {
  const messages = Array.from({ length: 80 }, () => ({ role: "user", content: "x".repeat(400_000) }));
  const bytes = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { model: "m", messages }));
  expect(rests(readBinary(GenerateRequestSchema, bytes))).toBeGreaterThan(79);
});
