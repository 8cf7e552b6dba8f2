import type { Value } from "@bufbuild/protobuf/wkt";
import type {
  CreateChatCompletionRequest,
  StreamChatCompletionRequest,
} from "../../gen/vx/openai/v1/chat_pb.js";
import type { GenerationRequest } from "../billing/generation-request.ts";
import { DomainError } from "../domain/errors.ts";
import { NO_OPTIONS } from "../domain/prompt.ts";
import { isEmptyList, isNothing, promptMessageOf, unsupported } from "./chat-content.ts";

type ChatRequest = CreateChatCompletionRequest | StreamChatCompletionRequest;

const MAX_STOPS = 4;
const MAX_STOP_CHARACTERS = 200;

/** Converts OpenAI's request. Unsupported fields that would change the reply are rejected, never ignored. */
export function generationRequestOfChat(request: ChatRequest): GenerationRequest {
  refuseUnsupported(request);
  const { maxTokens, maxCompletionTokens } = request;
  if (maxTokens !== undefined && maxCompletionTokens !== undefined && maxTokens !== maxCompletionTokens) {
    throw DomainError.ofField("max_tokens", "must equal max_completion_tokens, or be absent");
  }
  return {
    format: "openai-chat",
    model: request.model,
    messages: request.messages.map(promptMessageOf),
    maxTokens: maxCompletionTokens ?? maxTokens,
    temperature: request.temperature,
    stop: stopsOf(request.stop),
    options: NO_OPTIONS,
    user: "",
    maxCostMicros: undefined,
  };
}

function stopsOf(stop: Value | undefined): string[] {
  if (!stop || isNothing(stop)) return [];
  if (stop.kind.case === "listValue") {
    const { values } = stop.kind.value;
    if (values.length > MAX_STOPS)
      throw DomainError.ofField("stop", `must have at most ${MAX_STOPS} strings`);
    return values.map((value, i) => stopText(value, `stop[${i}]`));
  }
  return [stopText(stop, "stop")];
}

function stopText({ kind }: Value, field: string): string {
  if (kind.case !== "stringValue") throw DomainError.ofField(field, "must be a string");
  const { length } = [...kind.value.slice(0, 2 * MAX_STOP_CHARACTERS + 2)];
  if (length === 0 || length > MAX_STOP_CHARACTERS) {
    throw DomainError.ofField(field, `must have 1 to ${MAX_STOP_CHARACTERS} characters`);
  }
  return kind.value;
}

type FieldOfAnyForm = {
  [Field in keyof ChatRequest]-?: ChatRequest[Field] extends Value | undefined ? Field : never;
}[keyof ChatRequest];

/** A field that is accepted only with a value that has no effect, and a description of that value. */
type Rule = readonly [
  field: FieldOfAnyForm,
  name: string,
  isHarmless: (value: Value) => boolean,
  harmless?: string,
];

const UNSUPPORTED: readonly Rule[] = [
  ["n", "n", isNumber(1), "1"],
  ["topP", "top_p", isNumber(1), "1"],
  ["frequencyPenalty", "frequency_penalty", isNumber(0), "0"],
  ["presencePenalty", "presence_penalty", isNumber(0), "0"],
  ["tools", "tools", isEmptyList],
  ["toolChoice", "tool_choice", isOneOf("none", "auto"), '"none" or "auto"'],
  ["functions", "functions", isEmptyList],
  ["functionCall", "function_call", isOneOf("none", "auto"), '"none" or "auto"'],
  ["responseFormat", "response_format", isTextFormat, '{"type": "text"}'],
  ["logprobs", "logprobs", isFalse, "false"],
  ["topLogprobs", "top_logprobs", isNumber(0), "0"],
  ["logitBias", "logit_bias", isEmptyObject],
  ["modalities", "modalities", isTextOnly, '["text"]'],
  ["audio", "audio", () => false],
  ["webSearchOptions", "web_search_options", () => false],
  ["store", "store", isFalse, "false"],
  ["serviceTier", "service_tier", isOneOf("auto", "default"), '"auto" or "default"'],
  ["reasoningEffort", "reasoning_effort", () => false],
  ["verbosity", "verbosity", isOneOf("medium"), '"medium"'],
];

function refuseUnsupported(request: ChatRequest): void {
  for (const [field, name, isHarmless, harmless] of UNSUPPORTED) {
    const value = request[field];
    if (value && !isNothing(value) && !isHarmless(value)) throw unsupported(name, harmless);
  }
}

function isNumber(number: number) {
  return ({ kind }: Value) => kind.case === "numberValue" && kind.value === number;
}

function isOneOf(...texts: string[]) {
  return ({ kind }: Value) => kind.case === "stringValue" && texts.includes(kind.value);
}

function isFalse({ kind }: Value): boolean {
  return kind.case === "boolValue" && !kind.value;
}

function isEmptyObject({ kind }: Value): boolean {
  return kind.case === "structValue" && Object.keys(kind.value.fields).length === 0;
}

function isTextFormat({ kind }: Value): boolean {
  if (kind.case !== "structValue") return false;
  const { type, ...others } = kind.value.fields;
  return type !== undefined && isOneOf("text")(type) && Object.keys(others).length === 0;
}

function isTextOnly({ kind }: Value): boolean {
  return kind.case === "listValue" && kind.value.values.every(isOneOf("text"));
}
