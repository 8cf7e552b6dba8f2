import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateResponseRequest,
  CreateResponseResponseSchema,
  ResponseUsageSchema,
} from "../../../gen/vx/openai/v1/responses_pb.js";
import { DomainError, ERRORS } from "../../domain/errors.ts";
import { secondsOfId } from "../../domain/ids.ts";
import type { JsonObject, JsonValue } from "../../domain/json.ts";
import type { FinishReason } from "../../domain/output.ts";
import { inputTokensOf, outputTokensOf } from "../../domain/price.ts";
import type { PromptOptions, ResponseFormat, Tool, ToolChoice } from "../../domain/prompt.ts";
import type { Reply } from "../../generations/generation-request.ts";
import { valueOfJson } from "../../rules/untyped-values.ts";
import { type Item, responseIdOf } from "./items.ts";
import { metadataOf, summaryOf } from "./request.ts";

export type ResponseInit = Exclude<MessageInitShape<typeof CreateResponseResponseSchema>, Message>;

const NULL = valueOfJson(null);

/** The settings of the request, as every response repeats them: without members that this server does not know. */
export function settingsOf(request: CreateResponseRequest, options: PromptOptions): ResponseInit {
  const { instructions, maxOutputTokens, temperature, topP, user, safetyIdentifier, promptCacheKey } = request;
  return {
    object: "response",
    accessPrograms: NULL,
    tools: valueOfJson((options.tools ?? []).map(toolSettingOf)),
    toolChoice: valueOfJson(choiceSettingOf(options.toolChoice)),
    parallelToolCalls: request.parallelToolCalls ?? true,
    text: valueOfJson({ format: formatSettingOf(options.responseFormat), verbosity: "medium" }),
    reasoning: valueOfJson({ effort: options.reasoningEffort ?? null, summary: summaryOf(request) }),
    metadata: valueOfJson(metadataOf(request)),
    truncation: "disabled",
    serviceTier: "default",
    ...(instructions !== undefined && { instructions }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(user !== undefined && { user }),
    ...(safetyIdentifier !== undefined && { safetyIdentifier }),
    ...(promptCacheKey !== undefined && { promptCacheKey }),
  };
}

function toolSettingOf({ name, description, parameters, strict }: Tool): JsonObject {
  return {
    type: "function",
    name,
    description: description ?? null,
    parameters: parameters ?? null,
    strict: strict ?? null,
  };
}

function choiceSettingOf(choice: ToolChoice | undefined): JsonValue {
  return choice?.kind === "tool" ? { type: "function", name: choice.name } : (choice?.kind ?? "auto");
}

function formatSettingOf(format: ResponseFormat | undefined): JsonObject {
  switch (format?.kind) {
    case undefined:
      return { type: "text" };
    case "json":
      return { type: "json_object" };
    case "json_schema": {
      const { name, schema, strict } = format;
      return { type: "json_schema", name, schema, strict: strict ?? null };
    }
  }
}

export function startedResponse(generationId: string, model: string, settings: ResponseInit): ResponseInit {
  return {
    ...settings,
    id: responseIdOf(generationId),
    createdAt: BigInt(secondsOfId(generationId)),
    model,
    status: "in_progress",
    output: [],
  };
}

export function finishedResponse(reply: Reply, output: readonly Item[], settings: ResponseInit): ResponseInit {
  const reason = INCOMPLETE_REASONS[reply.finishReason];
  return {
    ...startedResponse(reply.id, reply.model, settings),
    status: reason === undefined ? "completed" : "incomplete",
    output: [...output],
    usage: usageOf(reply),
    balanceMicros: reply.balanceMicros,
    ...(reason !== undefined && { incompleteDetails: { reason } }),
  };
}

export function failedResponse(started: ResponseInit, output: readonly Item[], error: unknown): ResponseInit {
  const { reason, message } =
    error instanceof DomainError ? error : ({ reason: "internal", message: ERRORS.internal.message } as const);
  return { ...started, status: "failed", output: [...output], error: { code: reason, message } };
}

const INCOMPLETE_REASONS: Readonly<Record<FinishReason, string | undefined>> = {
  stop: undefined,
  tool_calls: undefined,
  length: "max_output_tokens",
  content_filter: "content_filter",
};

export function isIncomplete({ finishReason }: Reply): boolean {
  return INCOMPLETE_REASONS[finishReason] !== undefined;
}

function usageOf({ usage, costMicros }: Reply): MessageInitShape<typeof ResponseUsageSchema> {
  const inputTokens = inputTokensOf(usage);
  const outputTokens = outputTokensOf(usage);
  return {
    inputTokens: BigInt(inputTokens),
    inputTokensDetails: {
      cachedTokens: BigInt(usage.cachedInput),
      cacheWriteTokens: BigInt(usage.cacheWrite),
      imageTokens: BigInt(usage.imageTokens),
    },
    outputTokens: BigInt(outputTokens),
    outputTokensDetails: { reasoningTokens: BigInt(usage.reasoning) },
    totalTokens: BigInt(inputTokens + outputTokens),
    costMicros,
  };
}
