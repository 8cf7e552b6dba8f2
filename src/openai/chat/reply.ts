import type { MessageInitShape } from "@bufbuild/protobuf";
import { NullValue } from "@bufbuild/protobuf/wkt";
import type { ChatDeltaSchema, ChatReplySchema, ChatUsageSchema } from "../../../gen/vx/openai/v1/chat_pb.js";
import type { Delta, Output, ToolCallDelta } from "../../domain/output.ts";
import { inputTokensOf, outputTokensOf } from "../../domain/price.ts";
import type { ToolCall } from "../../domain/prompt.ts";
import type { Reply } from "../../generations/generation-request.ts";
import { valueOfJson } from "../../rules/untyped-values.ts";

/** Null, not absent: OpenAI's clients expect the member in every choice. */
export const NO_LOGPROBS = { kind: { case: "nullValue", value: NullValue.NULL_VALUE } } as const;

export function chatReplyOf({ text, reasoning, toolCalls }: Output): MessageInitShape<typeof ChatReplySchema> {
  const reasoningContent = reasoning.map((block) => block.text).join("");
  return {
    role: "assistant",
    ...((text !== "" || toolCalls.length === 0) && { content: text }),
    ...(toolCalls.length > 0 && { toolCalls: valueOfJson(toolCalls.map(toolCallOf)) }),
    ...(reasoningContent !== "" && { reasoningContent }),
  };
}

function toolCallOf({ id, name, arguments: text }: ToolCall) {
  return { id, type: "function", function: { name, arguments: text } };
}

/** Undefined for a piece that this format cannot express: the signature of a reasoning block. */
export function chatDeltaOf(delta: Delta): MessageInitShape<typeof ChatDeltaSchema> | undefined {
  switch (delta.kind) {
    case "text":
      return { content: delta.text };
    case "reasoning":
      return delta.reasoning.text === "" ? undefined : { reasoningContent: delta.reasoning.text };
    case "tool_call":
      return { toolCalls: valueOfJson([toolCallPieceOf(delta.toolCall)]) };
  }
}

/** Clients append what later pieces repeat, so only the first piece has id, type and name. */
function toolCallPieceOf({ index, id, name, arguments: text }: ToolCallDelta) {
  if (id === "") return { index, function: { arguments: text } };
  return { index, id, type: "function", function: { name, arguments: text } };
}

export function chatUsageOf({ usage, costMicros }: Reply): MessageInitShape<typeof ChatUsageSchema> {
  const inputTokens = inputTokensOf(usage);
  const outputTokens = outputTokensOf(usage);
  return {
    promptTokens: BigInt(inputTokens),
    completionTokens: BigInt(outputTokens),
    totalTokens: BigInt(inputTokens + outputTokens),
    costMicros,
    promptTokensDetails: {
      cachedTokens: BigInt(usage.cachedInput),
      cacheWriteTokens: BigInt(usage.cacheWrite),
      imageTokens: BigInt(usage.imageTokens),
    },
    completionTokensDetails: { reasoningTokens: BigInt(usage.reasoning) },
  };
}
