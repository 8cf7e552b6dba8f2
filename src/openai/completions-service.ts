import { CompletionsService, type CreateCompletionRequest } from "../../gen/vx/openai/v1/completions_pb.js";
import { defineService } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { secondsOfId } from "../domain/ids.ts";
import { presentOptions } from "../domain/prompt.ts";
import type { GenerationRequest } from "../generations/generation-request.ts";
import { COMPLETIONS } from "../rules/compatible-members.ts";
import { recordedUser } from "../rules/request-values.ts";
import { jsonIn, optionalNumberAt } from "../rules/untyped-members.ts";
import { chatUsageOf, NO_LOGPROBS } from "./chat/reply.ts";
import { stopsOf } from "./chat/request.ts";
import { type DecodeTokens, textsAt } from "./token-texts.ts";

export const completionsService = defineService(
  CompletionsService,
  {
    createCompletion: {
      prompt: ({ decodeTokens }, request) => generationRequestOfCompletion(request, decodeTokens),
      respond: (reply) => ({
        ...headOf(reply.id, reply.model),
        choices: [choiceOf(reply.output.text, reply.finishReason)],
        usage: chatUsageOf(reply),
        balanceMicros: reply.balanceMicros,
      }),
    },
    streamCompletion: {
      prompt: ({ decodeTokens }, request) => generationRequestOfCompletion(request, decodeTokens),
      /** Sends the pieces, then a chunk with the finish reason, then, if requested, a chunk with the usage. */
      respond: async function* (pieces, request) {
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
      },
    },
  },
  COMPLETIONS,
);

function headOf(id: string, model: string) {
  return { id, object: "text_completion", created: BigInt(secondsOfId(id)), model };
}

function choiceOf(text: string, finishReason?: string) {
  return { text, index: 0, logprobs: NO_LOGPROBS, ...(finishReason !== undefined && { finishReason }) };
}

/** Converts OpenAI's request. The prompt is a text and not a message, because base models have no template for one. */
async function generationRequestOfCompletion(request: CreateCompletionRequest, decode: DecodeTokens): Promise<GenerationRequest> {
  const { texts } = await textsAt(jsonIn(request.prompt), "prompt", decode);
  const [content, ...others] = texts;
  if (content === undefined || others.length > 0) {
    throw DomainError.ofField("prompt", "must be one text: several completions in one call are not supported");
  }
  return {
    format: "openai-chat",
    model: request.model,
    messages: [{ role: "user", content }],
    fields: ["prompt"],
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stop: stopsOf(jsonIn(request.stop)),
    options: presentOptions({
      task: { kind: "complete" },
      suffix: request.suffix || undefined,
      topP: optionalNumberAt(jsonIn(request.topP), "top_p", 0, 1),
      frequencyPenalty: optionalNumberAt(jsonIn(request.frequencyPenalty), "frequency_penalty", -2, 2),
      presencePenalty: optionalNumberAt(jsonIn(request.presencePenalty), "presence_penalty", -2, 2),
      seed: request.seed === undefined ? undefined : Number(request.seed),
    }),
    user: recordedUser(request.user ?? ""),
    maxCostMicros: undefined,
  };
}
