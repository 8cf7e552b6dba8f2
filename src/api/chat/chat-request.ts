import type { CreateChatCompletionRequest } from "../../../gen/vx/openai/v1/chat_pb.js";
import type { GenerationRequest } from "../../billing/generation-request.ts";
import { DomainError } from "../../domain/errors.ts";
import type { JsonValue } from "../../domain/json.ts";
import { recordedUser } from "../recorded-user.ts";
import {
  isEmptyList,
  isEmptyObject,
  isOneOf,
  jsonIn,
  refuseUnsupported,
  type UnsupportedField,
} from "../unsupported-fields.ts";
import { promptMessageOfChat } from "./chat-messages.ts";
import { optionsOfChat } from "./chat-options.ts";

const MAX_STOPS = 4;
const MAX_STOP_CHARACTERS = 200;

/** Converts OpenAI's request. Unsupported fields that would change the reply are rejected, never ignored. */
export function generationRequestOfChat(request: CreateChatCompletionRequest): GenerationRequest {
  refuseUnsupported(request, UNSUPPORTED);
  const { maxTokens, maxCompletionTokens } = request;
  if (maxTokens !== undefined && maxCompletionTokens !== undefined && maxTokens !== maxCompletionTokens) {
    throw DomainError.ofField("max_tokens", "must equal max_completion_tokens, or be absent");
  }
  return {
    format: "openai-chat",
    model: request.model,
    messages: request.messages.map(promptMessageOfChat),
    maxTokens: maxCompletionTokens ?? maxTokens,
    temperature: request.temperature,
    stop: stopsOf(jsonIn(request.stop)),
    options: optionsOfChat(request),
    user: recordedUser(request.user ?? request.safetyIdentifier ?? ""),
    maxCostMicros: undefined,
  };
}

export function stopsOf(stop: JsonValue | undefined): string[] {
  if (stop === undefined || stop === null) return [];
  if (!Array.isArray(stop)) return [stopText(stop, "stop")];
  if (stop.length > MAX_STOPS) throw DomainError.ofField("stop", `must have at most ${MAX_STOPS} strings`);
  return stop.map((text, i) => stopText(text, `stop[${i}]`));
}

function stopText(text: JsonValue, field: string): string {
  if (typeof text !== "string") throw DomainError.ofField(field, "must be a string");
  const { length } = [...text.slice(0, 2 * MAX_STOP_CHARACTERS + 2)];
  if (length === 0 || length > MAX_STOP_CHARACTERS) {
    throw DomainError.ofField(field, `must have 1 to ${MAX_STOP_CHARACTERS} characters`);
  }
  return text;
}

const UNSUPPORTED: readonly UnsupportedField<CreateChatCompletionRequest>[] = [
  ["n", "n", isOneOf(1), "1"],
  ["functions", "functions", isEmptyList],
  ["functionCall", "function_call", isOneOf("none", "auto"), '"none" or "auto"'],
  ["logprobs", "logprobs", isOneOf(false), "false"],
  ["topLogprobs", "top_logprobs", isOneOf(0), "0"],
  ["logitBias", "logit_bias", isEmptyObject],
  ["modalities", "modalities", isTextOnly, '["text"]'],
  ["audio", "audio"],
  ["webSearchOptions", "web_search_options"],
  ["store", "store", isOneOf(false), "false"],
  ["serviceTier", "service_tier", isOneOf("auto", "default"), '"auto" or "default"'],
  ["verbosity", "verbosity", isOneOf("medium"), '"medium"'],
  ["moderation", "moderation"],
];

function isTextOnly(value: JsonValue): boolean {
  return Array.isArray(value) && value.every(isOneOf("text"));
}
