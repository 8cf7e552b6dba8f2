import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateResponseResponseSchema,
  ResponseUsageSchema,
} from "../../../gen/vx/openai/v1/responses_pb.js";
import type { Reply } from "../../billing/generation-request.ts";
import { DomainError, ERRORS } from "../../domain/errors.ts";
import { secondsOfId } from "../../domain/ids.ts";
import type { FinishReason } from "../../domain/output.ts";
import { inputTokensOf, outputTokensOf } from "../../domain/usage.ts";
import { valueOfJson } from "../../rules/plain-values.ts";
import { jsonIn } from "../unsupported-fields.ts";
import { type Item, responseIdOf } from "./responses-items.ts";
import { metadataOf, type ResponsesRequest } from "./responses-request.ts";

export type ResponseInit = Exclude<MessageInitShape<typeof CreateResponseResponseSchema>, Message>;

/** The settings of the request, as every response repeats them. */
export function settingsOf(request: ResponsesRequest): ResponseInit {
  const { instructions, maxOutputTokens, temperature, topP, user, safetyIdentifier, promptCacheKey } =
    request;
  const text = jsonIn(request.text) as object | null | undefined;
  const reasoning = jsonIn(request.reasoning) as object | null | undefined;
  return {
    object: "response",
    tools: valueOfJson(jsonIn(request.tools) ?? []),
    toolChoice: valueOfJson(jsonIn(request.toolChoice) ?? "auto"),
    parallelToolCalls: request.parallelToolCalls ?? true,
    text: valueOfJson({ format: { type: "text" }, ...text }),
    reasoning: valueOfJson({ effort: null, summary: null, ...reasoning }),
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

/** A response before its end. */
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

export function finishedResponse(
  reply: Reply,
  output: readonly Item[],
  settings: ResponseInit,
): ResponseInit {
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
    error instanceof DomainError
      ? error
      : ({ reason: "internal", message: ERRORS.internal.message } as const);
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
