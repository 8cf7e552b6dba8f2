import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GenerateDeltaSchema, MessageSchema, ReasoningSchema, UsageSchema } from "../../gen/vx/v1/generate_pb.js";
import { formatMicros } from "../domain/money.ts";
import type { Delta, Output } from "../domain/output.ts";
import type { Reasoning } from "../domain/prompt.ts";
import { inputTokensOf, outputTokensOf } from "../domain/usage.ts";
import type { Reply } from "./generation-request.ts";

export function summaryOf(reply: Reply) {
  return {
    id: reply.id,
    model: reply.model,
    finishReason: reply.finishReason,
    usage: usageOf(reply),
    balanceMicros: reply.balanceMicros,
    maxTokens: reply.loweredMaxTokens,
  };
}

/** The message can be sent back unchanged, as a part of the conversation. */
export function messageOf({ text, toolCalls, reasoning }: Output): MessageInitShape<typeof MessageSchema> {
  return {
    role: "assistant",
    content: text,
    toolCalls: [...toolCalls],
    reasoning: reasoning.map(reasoningOf),
  };
}

export function deltaOf(delta: Delta): MessageInitShape<typeof GenerateDeltaSchema> {
  switch (delta.kind) {
    case "text":
      return { content: delta.text };
    case "reasoning":
      return { reasoning: reasoningOf(delta.reasoning) };
    case "tool_call":
      return { toolCall: delta.toolCall };
  }
}

function reasoningOf({ text, signature = "", encrypted = "" }: Reasoning): MessageInitShape<typeof ReasoningSchema> {
  return { text, signature, encrypted };
}

/** Public counts are inclusive: the details are parts of the input and output tokens. */
function usageOf({ usage, costMicros }: Reply): MessageInitShape<typeof UsageSchema> {
  return {
    inputTokens: BigInt(inputTokensOf(usage)),
    outputTokens: BigInt(outputTokensOf(usage)),
    costMicros,
    cost: formatMicros(costMicros),
    cachedInputTokens: BigInt(usage.cachedInput),
    cacheWriteTokens: BigInt(usage.cacheWrite),
    reasoningTokens: BigInt(usage.reasoning),
    imageTokens: BigInt(usage.imageTokens),
  };
}
