import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ChatUsageSchema } from "../../../gen/vx/openai/v1/chat_pb.js";
import type { Reply } from "../../metering/ask.ts";

export function chatUsageOf({ usage, costMicros }: Reply): MessageInitShape<typeof ChatUsageSchema> {
  const { inputTokens, outputTokens } = usage;
  return {
    promptTokens: BigInt(inputTokens),
    completionTokens: BigInt(outputTokens),
    totalTokens: BigInt(inputTokens + outputTokens),
    costMicros,
  };
}
