import type { CreateResponseRequest } from "../../../gen/vx/openai/v1/responses_pb.js";
import { MAX_TOOLS } from "../../billing/check-request.ts";
import type { GenerationRequest } from "../../billing/generation-request.ts";
import { DomainError } from "../../domain/errors.ts";
import type { JsonValue } from "../../domain/json.ts";
import {
  type PromptOptions,
  REASONING_SUMMARIES,
  type ReasoningSummary,
  type ResponseFormat,
  type Tool,
} from "../../domain/prompt.ts";
import { effortOf, requireType, schemaFormatOf, toolChoiceOf, toolOf } from "../openai-fields.ts";
import { presentOptions, recordedUser } from "../request-values.ts";
import {
  choiceAt,
  isAbsent,
  isDirectOnly,
  isEmptyList,
  isOneOf,
  jsonIn,
  objectAt,
  optionalListAt,
  optionalObjectAt,
  refuseMembers,
  refuseUnsupported,
  textAt,
  type UnsupportedField,
  type UnsupportedMember,
  unsupported,
} from "../untyped-members.ts";
import { conversationOf, SEND_ITEMS } from "./input.ts";

const ENCRYPTED_REASONING = "reasoning.encrypted_content";
const MAX_INCLUDE = 20;

/** Converts OpenAI's request. Unsupported fields that would change the response are rejected, never ignored. */
export function generationRequestOfResponses(request: CreateResponseRequest): GenerationRequest {
  refuseUnsupported(request, UNSUPPORTED);
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
    if (name !== ENCRYPTED_REASONING) throw unsupported(`include[${i}]`, `"${ENCRYPTED_REASONING}"`);
  }
  return names.length > 0;
}

function optionsOf(request: CreateResponseRequest): PromptOptions {
  return presentOptions({
    topP: request.topP,
    tools: toolsOf(jsonIn(request.tools)),
    toolChoice: toolChoiceOf(jsonIn(request.toolChoice), ({ name }) => textAt(name, "tool_choice.name")),
    parallelToolCalls: request.parallelToolCalls,
    responseFormat: responseFormatOf(jsonIn(request.text)),
    reasoningEffort: reasoningEffortOf(jsonIn(request.reasoning)),
    reasoningSummary: summaryOf(request) ?? undefined,
    extraFields: request.extraFields && {
      format: "openai-responses",
      fields: request.extraFields,
      unsupported: UNSUPPORTED_EXTRA,
    },
  });
}

function toolsOf(tools: JsonValue | undefined): readonly Tool[] | undefined {
  const list = optionalListAt(tools, "tools", MAX_TOOLS) ?? [];
  if (list.length === 0) return undefined;
  return list.map((one, i) => {
    const tool = objectAt(one, `tools[${i}]`);
    requireType(tool, "function", `tools[${i}]`);
    refuseMembers(tool, `tools[${i}]`, UNSUPPORTED_IN_TOOLS);
    return toolOf(tool, `tools[${i}]`);
  });
}

function responseFormatOf(value: JsonValue | undefined): ResponseFormat | undefined {
  const { verbosity, format: given } = optionalObjectAt(value, "text") ?? {};
  if (!isAbsent(verbosity) && verbosity !== "medium") throw unsupported("text.verbosity", '"medium"');
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
  const reasoning = optionalObjectAt(value, "reasoning");
  if (!reasoning) return undefined;
  refuseMembers(reasoning, "reasoning", UNSUPPORTED_IN_REASONING);
  return effortOf(reasoning.effort, "reasoning.effort");
}

/** The response repeats it. */
export function summaryOf(request: CreateResponseRequest): ReasoningSummary | null {
  const { summary } = optionalObjectAt(jsonIn(request.reasoning), "reasoning") ?? {};
  return isAbsent(summary) ? null : choiceAt(summary, "reasoning.summary", REASONING_SUMMARIES);
}

const UNSUPPORTED: readonly UnsupportedField<CreateResponseRequest>[] = [
  ["store", "store", isOneOf(false), "false"],
  ["conversation", "conversation"],
  ["background", "background", isOneOf(false), "false"],
  ["truncation", "truncation", isOneOf("disabled"), '"disabled"'],
  ["serviceTier", "service_tier", isOneOf("auto", "default"), '"auto" or "default"'],
  ["prompt", "prompt"],
  ["topLogprobs", "top_logprobs", isOneOf(0), "0"],
  ["maxToolCalls", "max_tool_calls"],
  ["contextManagement", "context_management", isEmptyList],
  ["moderation", "moderation"],
];

const UNSUPPORTED_EXTRA = ["access_programs", "image", "prompt_cache_options"];

const UNSUPPORTED_IN_REASONING: readonly UnsupportedMember[] = [
  ["context", isOneOf("auto"), '"auto"'],
  ["generate_summary"],
  ["mode", isOneOf("standard"), '"standard"'],
];

const UNSUPPORTED_IN_TOOLS: readonly UnsupportedMember[] = [
  ["allowed_callers", isDirectOnly, '["direct"]'],
  ["async", isOneOf(false), "false"],
  ["defer_loading", isOneOf(false), "false"],
  ["output_schema"],
];

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
