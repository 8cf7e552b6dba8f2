import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  GenerateRequest,
  GenerateResponseSchema,
  Message,
  StreamGenerateRequest,
  UsageSchema,
} from "../../gen/vx/v1/generate_pb.js";
import type { PromptMessage } from "../domain/generation.ts";
import { formatMicros } from "../domain/money.ts";
import type { Call } from "../gate/call.ts";
import type { Ask, Reply } from "../metering/ask.ts";
import type { Meter } from "../metering/meter.ts";

export async function generate(
  meter: Meter,
  request: GenerateRequest,
  call: Call,
): Promise<MessageInitShape<typeof GenerateResponseSchema>> {
  const reply = await meter.complete(call, askOf(request));
  return { ...summaryOf(reply), message: { role: "assistant", content: reply.content } };
}

export function askOf(request: GenerateRequest | StreamGenerateRequest): Ask {
  return {
    model: request.model,
    messages: request.messages.map(promptMessageOf),
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stop: request.stop,
  };
}

/**
 * A protobuf message has members that no upstream knows, such as $typeName. The rules of the .proto limit the role and
 * require the content.
 */
function promptMessageOf({ role, content }: Message): PromptMessage {
  return { role: role as PromptMessage["role"], content: content as string };
}

export function summaryOf(reply: Reply) {
  return {
    id: reply.id,
    model: reply.model,
    finishReason: reply.finishReason,
    usage: usageOf(reply),
    balanceMicros: reply.balanceMicros,
  };
}

function usageOf({ usage, costMicros }: Reply): MessageInitShape<typeof UsageSchema> {
  return {
    inputTokens: BigInt(usage.inputTokens),
    outputTokens: BigInt(usage.outputTokens),
    costMicros,
    cost: formatMicros(costMicros),
  };
}
