import type {
  GenerateRequest,
  ResponseFormat as ResponseFormatMessage,
  StreamGenerateRequest,
  Tool as ToolMessage,
} from "../../../gen/vx/v1/generate_pb.js";
import type { GenerationRequest } from "../../billing/generation-request.ts";
import { DomainError } from "../../domain/errors.ts";
import type {
  PromptMessage,
  PromptOptions,
  ReasoningEffort,
  ResponseFormat,
  Tool,
  ToolChoice,
} from "../../domain/prompt.ts";
import { presentOptions } from "../present-options.ts";
import { promptMessagesOf } from "./generate-message.ts";

type AnyRequest = GenerateRequest | StreamGenerateRequest;

export function generationRequestOf(request: AnyRequest): GenerationRequest | Promise<GenerationRequest> {
  const messages = promptMessagesOf(request.messages);
  return messages instanceof Promise
    ? messages.then((decoded) => withMessages(request, decoded))
    : withMessages(request, messages);
}

function withMessages(request: AnyRequest, messages: PromptMessage[]): GenerationRequest {
  return {
    format: "native",
    model: request.model,
    messages,
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stop: request.stop,
    options: optionsOf(request),
    user: request.user,
    maxCostMicros: request.maxCostMicros,
  };
}

function optionsOf(request: AnyRequest): PromptOptions {
  const { topP, topK, seed, presencePenalty, frequencyPenalty, parallelToolCalls } = request;
  return presentOptions({
    topP,
    topK,
    seed: seed === undefined ? undefined : Number(seed),
    presencePenalty,
    frequencyPenalty,
    tools: request.tools.length === 0 ? undefined : request.tools.map(toolOf),
    toolChoice: request.toolChoice === undefined ? undefined : toolChoiceOf(request.toolChoice),
    parallelToolCalls,
    responseFormat: request.responseFormat && responseFormatOf(request.responseFormat),
    // The rules of the .proto limit the values.
    reasoningEffort: request.reasoningEffort as ReasoningEffort | undefined,
  });
}

function toolOf({ name, description, parameters, strict }: ToolMessage): Tool {
  return { name, description: description === "" ? undefined : description, parameters, strict };
}

function toolChoiceOf(text: string): ToolChoice {
  if (text === "auto" || text === "none" || text === "required") return { kind: text };
  return { kind: "tool", name: text };
}

function responseFormatOf(format: ResponseFormatMessage): ResponseFormat | undefined {
  const { type, name, schema, strict } = format;
  if (type === "json_schema") {
    if (!schema)
      throw DomainError.ofField("response_format.schema", 'is required with the type "json_schema"');
    return { kind: "json_schema", name: name === "" ? "response" : name, schema, strict };
  }
  if (name !== "" || schema || strict !== undefined) {
    throw DomainError.ofField(
      "response_format",
      'must have no name, schema or strict, except with the type "json_schema"',
    );
  }
  return type === "json" ? { kind: "json" } : undefined;
}
