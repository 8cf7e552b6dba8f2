import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  CompletionsService,
  type CreateCompletionRequest,
  CreateCompletionRequestSchema,
  type CreateCompletionResponseSchema,
  type StreamCompletionResponseSchema,
} from "../../../gen/vx/openai/v1/completions_pb.js";
import type { Meter } from "../../billing/meter.ts";
import { secondsOfId } from "../../domain/ids.ts";
import type { ApiCall } from "../api-call.ts";
import { chatUsageOf, NO_LOGPROBS } from "../chat/chat-reply.ts";
import { defineService } from "../define-service.ts";
import type { DecodeTokens } from "../token-texts.ts";
import { generationRequestOfCompletion } from "./completions-request.ts";

export async function createCompletion(
  meter: Meter,
  decode: DecodeTokens,
  request: CreateCompletionRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof CreateCompletionResponseSchema>> {
  const reply = await meter.complete(
    call.caller(CreateCompletionRequestSchema, request),
    await generationRequestOfCompletion(request, decode),
  );
  return {
    ...headOf(reply.id, reply.model),
    choices: [choiceOf(reply.output.text, reply.finishReason)],
    usage: chatUsageOf(reply),
    balanceMicros: reply.balanceMicros,
  };
}

/** Sends the pieces, then a chunk with the finish reason, then, if requested, a chunk with the usage. */
export async function* streamCompletion(
  meter: Meter,
  decode: DecodeTokens,
  request: CreateCompletionRequest,
  call: ApiCall,
): AsyncGenerator<MessageInitShape<typeof StreamCompletionResponseSchema>> {
  const pieces = meter.stream(
    call.caller(CreateCompletionRequestSchema, request),
    await generationRequestOfCompletion(request, decode),
  );
  for await (const piece of pieces) {
    if (piece.kind === "delta") {
      if (piece.delta.kind !== "text") continue;
      yield { ...headOf(piece.id, piece.model), choices: [choiceOf(piece.delta.text)] };
      continue;
    }
    const { reply } = piece;
    const head = headOf(reply.id, reply.model);
    yield { ...head, choices: [choiceOf("", reply.finishReason)] };
    if (request.streamOptions?.includeUsage) {
      yield { ...head, choices: [], usage: chatUsageOf(reply), balanceMicros: reply.balanceMicros };
    }
  }
}

function headOf(id: string, model: string) {
  return { id, object: "text_completion", created: BigInt(secondsOfId(id)), model };
}

function choiceOf(text: string, finishReason?: string) {
  return { text, index: 0, logprobs: NO_LOGPROBS, ...(finishReason !== undefined && { finishReason }) };
}

/** Unknown fields are ignored: OpenAI's clients send fields that this server does not know. */
export const completionsService = defineService(
  CompletionsService,
  ({ meter, deps }) => ({
    createCompletion: (request, call) => createCompletion(meter, deps.decodeTokens, request, call),
    streamCompletion: (request, call) => streamCompletion(meter, deps.decodeTokens, request, call),
  }),
  "ignore",
);
