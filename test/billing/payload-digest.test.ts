import { expect, test } from "vitest";
import { digestOf } from "../../src/billing/payload-digest.ts";
import type { ContentPart, PromptMessage } from "../../src/domain/prompt.ts";
import { requestOf } from "../support/samples.ts";

const digest = (...messages: PromptMessage[]) => digestOf("generate", requestOf({ messages }));
const text = (content: string): ContentPart => ({ kind: "text", text: content });
const result: PromptMessage = { role: "tool", content: "a", toolCallId: "call" };

test.each<[string, PromptMessage[], PromptMessage[]]>([
  ["a failed result of a tool", [result], [{ ...result, isError: true }]],
  ["a text and a part", [{ role: "user", content: "text a" }], [{ role: "user", content: [text("a")] }]],
  [
    "one message and two",
    [{ role: "user", content: [text("a"), text("b")] }],
    [
      { role: "user", content: [text("a")] },
      { role: "user", content: [text("b")] },
    ],
  ],
  [
    "the order of parts",
    [{ role: "user", content: [text("a"), text("b")] }],
    [{ role: "user", content: [text("b"), text("a")] }],
  ],
])("different payloads have different digests: %s", async (_, one, other) => {
  expect(await digest(...one)).toBe(await digest(...one));
  expect(await digest(...one)).not.toBe(await digest(...other));
});

test("cache controls change no reply, so they do not change the digest", async () => {
  const controlled = { ...result, cacheControl: { type: "ephemeral" } };
  expect(await digest(controlled)).toBe(await digest(result));
});
