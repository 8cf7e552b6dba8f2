import type { CreateResponseRequest } from "../../../gen/vx/openai/v1/responses_pb.js";
import { DomainError } from "../../domain/errors.ts";
import type { JsonValue } from "../../domain/json.ts";
import {
  type PromptOptions,
  presentOptions,
  REASONING_SUMMARIES,
  type ReasoningSummary,
  type ResponseFormat,
} from "../../domain/prompt.ts";
import type { GenerationRequest } from "../../generations/generation-request.ts";
import { recordedUser } from "../../rules/request-values.ts";
import { choiceAt, isAbsent, jsonIn, optionalListAt, optionalObjectAt, textAt } from "../../rules/untyped-members.ts";
import { effortOf, schemaFormatOf, toolChoiceOf, toolOf, toolsAt } from "../fields.ts";
import { conversationOf, SEND_ITEMS } from "./input.ts";

const ENCRYPTED_REASONING = "reasoning.encrypted_content";
const MAX_INCLUDE = 20;

/** Converts OpenAI's request, whose members are checked. */
export function generationRequestOfResponses(request: CreateResponseRequest): GenerationRequest {
  if (!isAbsent(jsonIn(request.previousResponseId)))
    throw DomainError.ofField("previous_response_id", `is not supported, ${SEND_ITEMS}`);
  return {
    format: "openai-responses",
    model: request.model,
    ...conversationOf(request.instructions, jsonIn(request.input)),
    maxTokens: request.maxOutputTokens,
    temperature: request.temperature,
    stop: [],
    options: optionsOf(request),
    user: recordedUser(request.user ?? request.safetyIdentifier ?? ""),
    maxCostMicros: undefined,
  };
}

/** Whether the response contains reasoning in the form that only the upstream can read. */
export function includesEncryptedReasoning({ include }: CreateResponseRequest): boolean {
  const names = optionalListAt(jsonIn(include), "include", MAX_INCLUDE) ?? [];
  for (const [i, name] of names.entries()) {
    choiceAt(name, `include[${i}]`, [ENCRYPTED_REASONING]);
  }
  return names.length > 0;
}

function optionsOf(request: CreateResponseRequest): PromptOptions {
  return presentOptions({
    topP: request.topP,
    tools: toolsAt(jsonIn(request.tools), toolOf),
    toolChoice: toolChoiceOf(jsonIn(request.toolChoice), ({ name }) => textAt(name, "tool_choice.name")),
    parallelToolCalls: request.parallelToolCalls,
    responseFormat: responseFormatOf(jsonIn(request.text)),
    reasoningEffort: reasoningEffortOf(jsonIn(request.reasoning)),
    reasoningSummary: summaryOf(request) ?? undefined,
    extraFields: request.extraFields && { format: "openai-responses", fields: request.extraFields },
  });
}

function responseFormatOf(value: JsonValue | undefined): ResponseFormat | undefined {
  const { format: given } = optionalObjectAt(value, "text") ?? {};
  const format = optionalObjectAt(given, "text.format");
  if (!format) return undefined;
  switch (choiceAt(format.type, "text.format.type", ["text", "json_object", "json_schema"])) {
    case "text":
      return undefined;
    case "json_object":
      return { kind: "json" };
    case "json_schema":
      return schemaFormatOf(format, "text.format");
  }
}

function reasoningEffortOf(value: JsonValue | undefined): PromptOptions["reasoningEffort"] {
  const { effort } = optionalObjectAt(value, "reasoning") ?? {};
  return effortOf(effort, "reasoning.effort");
}

/** The response repeats it. */
export function summaryOf(request: CreateResponseRequest): ReasoningSummary | null {
  const { summary } = optionalObjectAt(jsonIn(request.reasoning), "reasoning") ?? {};
  return isAbsent(summary) ? null : choiceAt(summary, "reasoning.summary", REASONING_SUMMARIES);
}

const MAX_METADATA = 16;
const MAX_METADATA_NAME = 64;
const MAX_METADATA_TEXT = 512;

/** The caller's own data, for the response. */
export function metadataOf(request: CreateResponseRequest): JsonValue {
  const metadata = optionalObjectAt(jsonIn(request.metadata), "metadata") ?? {};
  const entries = Object.entries(metadata);
  if (entries.length > MAX_METADATA) {
    throw DomainError.ofField("metadata", `must have at most ${MAX_METADATA} members`);
  }
  for (const [name, value] of entries) {
    const field = `metadata.${name.slice(0, MAX_METADATA_NAME)}`;
    if (name.length > MAX_METADATA_NAME || textAt(value, field).length > MAX_METADATA_TEXT) {
      const limits = `a name of ${MAX_METADATA_NAME} and a text of ${MAX_METADATA_TEXT} characters`;
      throw DomainError.ofField(field, `must have at most ${limits}`);
    }
  }
  return metadata;
}
