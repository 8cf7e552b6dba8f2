import { fromJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type ChatMessage, CreateChatCompletionRequestSchema } from "../../gen/vx/openai/v1/chat_pb.js";
import { CreateResponseRequestSchema } from "../../gen/vx/openai/v1/responses_pb.js";
import { generationRequestOfChat } from "../../src/api/chat/chat-request.ts";
import { settingsOf } from "../../src/api/responses/responses-reply.ts";
import { generationRequestOfResponses } from "../../src/api/responses/responses-request.ts";
import { valueOfJson } from "../../src/rules/plain-values.ts";
import { longestTurnMs } from "../support/longest-turn.ts";

const part = (type: string) => ({ type, text: "word ".repeat(50) });

// About as many values as the untyped fields of one request can have.
test("a chat of 2,000 messages with ten parts each is converted within 50 ms", async () => {
  const request = fromJson(CreateChatCompletionRequestSchema, {
    model: "m",
    messages: Array.from({ length: 2_000 }, () => ({ role: "user" })),
  });
  for (const message of request.messages as ChatMessage[]) {
    message.content = valueOfJson(Array.from({ length: 10 }, () => part("text")));
  }
  const converted = Promise.resolve().then(() => generationRequestOfChat(request));
  expect(await longestTurnMs(converted)).toBeLessThan(50);
  expect((await converted).messages).toHaveLength(2_000);
});

test("an input of 10,000 items is converted within 50 ms", async () => {
  const request = fromJson(CreateResponseRequestSchema, { model: "m" });
  const item = { type: "message", role: "user", content: [part("input_text")] };
  request.input = valueOfJson(Array.from({ length: 10_000 }, () => item));
  const converted = Promise.resolve().then(() => {
    const { options } = generationRequestOfResponses(request);
    return settingsOf(request, options);
  });
  expect(await longestTurnMs(converted)).toBeLessThan(50);
});
