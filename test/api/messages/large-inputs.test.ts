import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateMessageRequestSchema } from "../../../gen/vx/anthropic/v1/messages_pb.js";
import { generationRequestOfMessage } from "../../../src/api/messages/messages-request.ts";
import { checkConversation } from "../../../src/domain/conversation.ts";
import { valueOfJson } from "../../../src/rules/plain-values.ts";
import { longestTurnMs } from "../../support/longest-turn.ts";

const toolUse = (id: string, input: object) => ({ type: "tool_use", id, name: "f", input });

/** A request in which each assistant message has these blocks. */
const requestOf = (...messages: object[][]) =>
  create(CreateMessageRequestSchema, {
    model: "m",
    maxTokens: 1,
    messages: messages.map((blocks) => ({ role: "assistant", content: valueOfJson(blocks as never) })),
  });

// Each control character is six characters of JSON text.
test("30 MB of control characters in the inputs of tools are converted within 50 ms a turn", async () => {
  const input = { text: "\u0001".repeat(390_000) };
  const request = requestOf(...Array.from({ length: 77 }, () => [toolUse("a", input)]));
  expect(await longestTurnMs(Promise.resolve().then(() => generationRequestOfMessage(request)))).toBeLessThan(
    50,
  );
});

test("an input above the maximum of a message is refused before it is written", async () => {
  const half = { text: "x".repeat(250_000) };
  const converted = generationRequestOfMessage(requestOf([toolUse("a", half), toolUse("b", half)]));
  await expect(converted).rejects.toThrow(/messages\[0\]\.content: must be at most 400000 characters/);
});

test("30 MB of short lists in arguments are checked within 50 ms a turn", async () => {
  const text = `{"a":[${"[],".repeat(400)}1]}`;
  const toolCalls = Array.from({ length: 256 }, (_, i) => ({ id: `a${i}`, name: "f", arguments: text }));
  const messages = Array.from({ length: 100 }, () => ({
    role: "assistant" as const,
    content: "",
    toolCalls,
  }));
  const checked = Promise.resolve().then(() => checkConversation({ format: "native", messages }));
  expect(await longestTurnMs(checked)).toBeLessThan(50);
});
