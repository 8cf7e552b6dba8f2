import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type GenerateRequest,
  type GenerateResponseSchema,
  GenerateService,
  type Message,
  type StreamGenerateRequest,
  type StreamGenerateResponseSchema,
  type UsageSchema,
} from "../../gen/vx/v1/generate_pb.js";
import type { GenerationRequest, Reply } from "../billing/generation-request.ts";
import type { Meter } from "../billing/meter.ts";
import { formatMicros } from "../domain/money.ts";
import { NO_OPTIONS, type PromptMessage } from "../domain/prompt.ts";
import { inputTokensOf, outputTokensOf } from "../domain/usage.ts";
import type { ApiCall } from "./api-call.ts";
import { defineService } from "./define-service.ts";

export async function generate(
  meter: Meter,
  request: GenerateRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof GenerateResponseSchema>> {
  const reply = await meter.complete(call.caller(), generationRequestOf(request));
  return { ...summaryOf(reply), message: { role: "assistant", content: reply.output.text } };
}

export function generationRequestOf(request: GenerateRequest | StreamGenerateRequest): GenerationRequest {
  return {
    format: "native",
    model: request.model,
    messages: request.messages.map(promptMessageOf),
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stop: request.stop,
    options: NO_OPTIONS,
    user: "",
    maxCostMicros: undefined,
  };
}

/**
 * Copies the fields, because a protobuf message has members that upstreams do not accept, such as $typeName. The
 * rules of the .proto limit the role and require the content.
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
    inputTokens: BigInt(inputTokensOf(usage)),
    outputTokens: BigInt(outputTokensOf(usage)),
    costMicros,
    cost: formatMicros(costMicros),
  };
}

export async function* streamGenerate(
  meter: Meter,
  request: StreamGenerateRequest,
  call: ApiCall,
): AsyncGenerator<MessageInitShape<typeof StreamGenerateResponseSchema>> {
  for await (const piece of meter.stream(call.caller(), generationRequestOf(request))) {
    if (piece.kind === "reply") yield { event: { case: "done", value: summaryOf(piece.reply) } };
    else if (piece.delta.kind === "text") {
      yield { event: { case: "delta", value: { content: piece.delta.text } } };
    }
  }
}

export const generateService = defineService(GenerateService, ({ meter }) => ({
  generate: (request, call) => generate(meter, request, call),
  streamGenerate: (request, call) => streamGenerate(meter, request, call),
}));
