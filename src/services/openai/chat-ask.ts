import type { Value } from "@bufbuild/protobuf/wkt";
import type {
  CreateChatCompletionRequest,
  StreamChatCompletionRequest,
} from "../../../gen/vx/openai/v1/chat_pb.js";
import { DomainError } from "../../domain/errors.ts";
import type { Ask } from "../../metering/ask.ts";
import { isEmptyList, isNothing, promptMessageOf, unsupported } from "./chat-content.ts";

type ChatRequest = CreateChatCompletionRequest | StreamChatCompletionRequest;

const MAX_STOPS = 4;
const MAX_STOP_CHARACTERS = 200;

/** OpenAI's request as ours. What would change the meaning and is not supported is refused, never dropped. */
export function askOfChat(request: ChatRequest): Ask {
  refuseUnsupported(request);
  const { maxTokens, maxCompletionTokens } = request;
  if (maxTokens !== undefined && maxCompletionTokens !== undefined && maxTokens !== maxCompletionTokens) {
    throw DomainError.ofField("max_tokens", "must be the same as max_completion_tokens, or left out");
  }
  return {
    model: request.model,
    messages: request.messages.map(promptMessageOf),
    maxTokens: maxCompletionTokens ?? maxTokens,
    temperature: request.temperature,
    stop: stopsOf(request.stop),
  };
}

function stopsOf(stop: Value | undefined): string[] {
  if (!stop || isNothing(stop)) return [];
  if (stop.kind.case === "listValue") {
    const { values } = stop.kind.value;
    if (values.length > MAX_STOPS) throw DomainError.ofField("stop", `must have at most ${MAX_STOPS} texts`);
    return values.map((value, i) => stopText(value, `stop[${i}]`));
  }
  return [stopText(stop, "stop")];
}

function stopText({ kind }: Value, field: string): string {
  if (kind.case !== "stringValue") throw DomainError.ofField(field, "must be a text");
  const { length } = [...kind.value.slice(0, 2 * MAX_STOP_CHARACTERS + 2)];
  if (length === 0 || length > MAX_STOP_CHARACTERS) {
    throw DomainError.ofField(field, `must have 1 to ${MAX_STOP_CHARACTERS} characters`);
  }
  return kind.value;
}

/** A field, what the caller sent, whether that changes nothing, and what would. */
type Rule = readonly [
  field: string,
  value: Value | undefined,
  isHarmless: (value: Value) => boolean,
  harmless?: string,
];

function refuseUnsupported(request: ChatRequest): void {
  const rules: readonly Rule[] = [
    ["n", request.n, isNumber(1), "1"],
    ["top_p", request.topP, isNumber(1), "1"],
    ["frequency_penalty", request.frequencyPenalty, isNumber(0), "0"],
    ["presence_penalty", request.presencePenalty, isNumber(0), "0"],
    ["tools", request.tools, isEmptyList],
    ["tool_choice", request.toolChoice, isOneOf("none", "auto"), '"none" or "auto"'],
    ["functions", request.functions, isEmptyList],
    ["function_call", request.functionCall, isOneOf("none", "auto"), '"none" or "auto"'],
    ["response_format", request.responseFormat, isTextFormat, '{"type": "text"}'],
    ["logprobs", request.logprobs, isFalse, "false"],
    ["top_logprobs", request.topLogprobs, isNumber(0), "0"],
    ["logit_bias", request.logitBias, isEmptyObject],
    ["modalities", request.modalities, isTextOnly, '["text"]'],
    ["audio", request.audio, () => false],
    ["web_search_options", request.webSearchOptions, () => false],
    ["store", request.store, isFalse, "false"],
    ["service_tier", request.serviceTier, isOneOf("auto", "default"), '"auto" or "default"'],
    ["reasoning_effort", request.reasoningEffort, () => false],
    ["verbosity", request.verbosity, isOneOf("medium"), '"medium"'],
  ];
  for (const [field, value, isHarmless, harmless] of rules) {
    if (value && !isNothing(value) && !isHarmless(value)) throw unsupported(field, harmless);
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
