import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateMessageRequestSchema } from "../../gen/vx/anthropic/v1/messages_pb.js";
import { generationRequestOfMessage } from "../../src/anthropic/request.ts";
import { valueOfJson } from "../../src/rules/untyped-values.ts";

const toolUse = (id: string, input: object) => ({ type: "tool_use", id, name: "f", input });

/** A request in which each assistant message has these blocks. */
const requestOf = (...messages: object[][]) =>
  create(CreateMessageRequestSchema, {
    model: "m",
    maxTokens: 1,
    messages: messages.map((blocks) => ({ role: "assistant", content: valueOfJson(blocks as never) })),
  });

test("an input above the maximum of a message is refused before it is written", async () => {
  const half = { text: "x".repeat(250_000) };
  const converted = generationRequestOfMessage(requestOf([toolUse("a", half), toolUse("b", half)]));
  await expect(converted).rejects.toThrow(/messages\[0\]\.content: must be at most 400000 characters/);
});
