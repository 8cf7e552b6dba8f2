import type { CreateCompletionRequest } from "../../../gen/vx/openai/v1/completions_pb.js";
import type { GenerationRequest } from "../../billing/generation-request.ts";
import { DomainError } from "../../domain/errors.ts";
import { stopsOf } from "../chat/chat-request.ts";
import { presentOptions } from "../present-options.ts";
import { recordedUser } from "../recorded-user.ts";
import { type DecodeTokens, textsAt } from "../token-texts.ts";
import {
  isEmptyObject,
  isOneOf,
  jsonIn,
  refuseUnsupported,
  type UnsupportedField,
} from "../unsupported-fields.ts";
import { optionalNumberAt } from "../untyped-members.ts";

/** Converts OpenAI's request. The prompt is a text and not a message, because base models have no template for one. */
export async function generationRequestOfCompletion(
  request: CreateCompletionRequest,
  decode: DecodeTokens,
): Promise<GenerationRequest> {
  refuseUnsupported(request, UNSUPPORTED);
  const { texts } = await textsAt(jsonIn(request.prompt), "prompt", decode);
  const [content, ...others] = texts;
  if (content === undefined || others.length > 0) {
    throw DomainError.ofField(
      "prompt",
      "must be one text: several completions in one call are not supported",
    );
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

const UNSUPPORTED: readonly UnsupportedField<CreateCompletionRequest>[] = [
  ["n", "n", isOneOf(1), "1"],
  ["bestOf", "best_of", isOneOf(1), "1"],
  ["echo", "echo", isOneOf(false), "false"],
  ["logprobs", "logprobs"],
  ["logitBias", "logit_bias", isEmptyObject],
];
