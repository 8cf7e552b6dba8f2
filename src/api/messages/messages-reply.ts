import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ContentBlockSchema,
  CreateMessageResponseSchema,
  MessageDeltaSchema,
  MessageUsageSchema,
} from "../../../gen/vx/anthropic/v1/messages_pb.js";
import type { Reply } from "../../billing/generation-request.ts";
import { withPrefix } from "../../domain/ids.ts";
import type { FinishReason, Output } from "../../domain/output.ts";
import { parseJson } from "../../domain/parse-json.ts";
import type { Reasoning, ToolCall } from "../../domain/prompt.ts";
import { outputTokensOf } from "../../domain/usage.ts";
import { valueOfJson } from "../../rules/plain-values.ts";

type Message = MessageInitShape<typeof CreateMessageResponseSchema>;
type Block = MessageInitShape<typeof ContentBlockSchema>;

export function messageOf(reply: Reply): Message {
  return {
    ...headOf(reply.id, reply.model),
    content: blocksOf(reply.output),
    stopReason: stopReasonOf(reply),
    ...(reply.stopSequence == null ? {} : { stopSequence: reply.stopSequence }),
    usage: messageUsageOf(reply),
    balanceMicros: reply.balanceMicros,
  };
}

/** A message without content, for the first event of a stream. The usage is known only at its end. */
export function emptyMessageOf(id: string, model: string): Message {
  return { ...headOf(id, model), content: [], usage: { outputTokensDetails: {}, ...NO_DETAILS } };
}

function headOf(id: string, model: string) {
  const head = { id: withPrefix("msg", id), type: "message", role: "assistant", model };
  return { ...head, container: NULL, diagnostics: NULL, stopDetails: NULL };
}

/** Members that Anthropic's clients require although this server never has a value for them. */
const NULL = valueOfJson(null);
const NO_DETAILS = {
  cacheCreation: NULL,
  inferenceGeo: NULL,
  serverToolUse: NULL,
  serviceTier: NULL,
  speed: NULL,
};

export function endDeltaOf(reply: Reply): MessageInitShape<typeof MessageDeltaSchema> {
  return {
    stopReason: stopReasonOf(reply),
    container: NULL,
    stopDetails: NULL,
    stopSequence: valueOfJson(reply.stopSequence ?? null),
  };
}

function stopReasonOf({ finishReason, stopSequence }: Reply): string {
  return stopSequence === undefined ? STOP_REASONS[finishReason] : "stop_sequence";
}

const STOP_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
};

export function messageUsageOf({ usage, costMicros }: Reply): MessageInitShape<typeof MessageUsageSchema> {
  return {
    inputTokens: BigInt(usage.input),
    cacheCreationInputTokens: BigInt(usage.cacheWrite),
    cacheReadInputTokens: BigInt(usage.cachedInput),
    outputTokens: BigInt(outputTokensOf(usage)),
    outputTokensDetails: { thinkingTokens: BigInt(usage.reasoning) },
    costMicros,
    ...NO_DETAILS,
  };
}

function blocksOf({ reasoning, text, toolCalls }: Output): Block[] {
  return [
    ...reasoning.flatMap(thinkingBlocks),
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...toolCalls.map(toolUseBlock),
  ];
}

/** The format has separate blocks for the text and the encrypted form. */
function thinkingBlocks({ text, signature = "", encrypted }: Reasoning): Block[] {
  const thinking = { type: "thinking", thinking: text, signature };
  if (encrypted === undefined) return [thinking];
  return [...(text === "" ? [] : [thinking]), redactedBlock(encrypted)];
}

export function redactedBlock(encrypted: string): Block {
  return { type: "redacted_thinking", data: encrypted };
}

function toolUseBlock({ id, name, arguments: text }: ToolCall): Block {
  return { ...startedToolUse(id, name), input: inputOf(text) };
}

/** A call whose input is empty. */
export function startedToolUse(id: string, name: string): Block {
  return { type: "tool_use", id, name, input: {}, caller: DIRECT };
}

const DIRECT = valueOfJson({ type: "direct" });

/** Arguments that the token limit cut are not JSON: then the input is empty, and the stop reason says why. */
function inputOf(text: string) {
  try {
    const value = parseJson(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Block["input"]) : {};
  } catch {
    return {};
  }
}
