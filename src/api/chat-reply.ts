import type { MessageInitShape } from "@bufbuild/protobuf";
import { NullValue } from "@bufbuild/protobuf/wkt";
import type { ChatUsageSchema } from "../../gen/vx/openai/v1/chat_pb.js";
import type { Reply } from "../billing/generation-request.ts";
import { inputTokensOf, outputTokensOf } from "../domain/usage.ts";

/** Null, not absent: OpenAI's clients expect the member in every choice. */
export const NO_LOGPROBS = { kind: { case: "nullValue", value: NullValue.NULL_VALUE } } as const;

export function chatUsageOf({ usage, costMicros }: Reply): MessageInitShape<typeof ChatUsageSchema> {
  const inputTokens = inputTokensOf(usage);
  const outputTokens = outputTokensOf(usage);
  return {
    promptTokens: BigInt(inputTokens),
    completionTokens: BigInt(outputTokens),
    totalTokens: BigInt(inputTokens + outputTokens),
    costMicros,
  };
}
