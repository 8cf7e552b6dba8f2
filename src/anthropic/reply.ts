import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ContentBlockSchema,
  CreateMessageResponseSchema,
  MessageDeltaSchema,
  MessageUsageSchema,
  StreamMessageResponseSchema,
} from "../../gen/vx/anthropic/v1/messages_pb.js";
import { withPrefix } from "../domain/ids.ts";
import { parseJson } from "../domain/json.ts";
import type { Delta, FinishReason, Output, ToolCallDelta } from "../domain/output.ts";
import { outputTokensOf, type Usage } from "../domain/price.ts";
import type { Reasoning, ToolCall } from "../domain/prompt.ts";
import type { Piece, Reply } from "../generations/generation-request.ts";
import { valueOfJson } from "../rules/untyped-values.ts";

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
function emptyMessageOf(id: string, model: string): Message {
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

function endDeltaOf(reply: Reply): MessageInitShape<typeof MessageDeltaSchema> {
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

function messageUsageOf({ usage, costMicros }: Reply): MessageInitShape<typeof MessageUsageSchema> {
  return {
    inputTokens: BigInt(usage.input),
    cacheCreationInputTokens: BigInt(usage.cacheWrite),
    cacheReadInputTokens: BigInt(usage.cachedInput),
    outputTokens: BigInt(outputTokensOf(usage)),
    outputTokensDetails: { thinkingTokens: BigInt(usage.reasoning) },
    costMicros,
    ...NO_DETAILS,
    ...(usage.cacheWrite > 0 ? { cacheCreation: cacheCreationOf(usage) } : {}),
  };
}

function cacheCreationOf({ cacheWrite, cacheWrite1h }: Usage) {
  return valueOfJson({
    ephemeral_1h_input_tokens: cacheWrite1h,
    ephemeral_5m_input_tokens: cacheWrite - cacheWrite1h,
  });
}

function blocksOf({ reasoning, text, toolCalls }: Output): Block[] {
  return [...reasoning.flatMap(thinkingBlocks), ...(text === "" ? [] : [{ type: "text", text }]), ...toolCalls.map(toolUseBlock)];
}

/** The format has separate blocks for the text and the encrypted form. */
function thinkingBlocks({ text, signature = "", encrypted }: Reasoning): Block[] {
  const thinking = { type: "thinking", thinking: text, signature };
  if (encrypted === undefined) return [thinking];
  return [...(text === "" ? [] : [thinking]), redactedBlock(encrypted)];
}

function redactedBlock(encrypted: string): Block {
  return { type: "redacted_thinking", data: encrypted };
}

function toolUseBlock({ id, name, arguments: text }: ToolCall): Block {
  return { ...startedToolUse(id, name), input: inputOf(text) };
}

function startedToolUse(id: string, name: string): Block {
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

type Event = MessageInitShape<typeof StreamMessageResponseSchema>;

/** Converts the pieces of a reply to Anthropic's events. */
export async function* messageEvents(pieces: AsyncIterable<Piece>): AsyncGenerator<Event> {
  const blocks = new BlockEvents();
  let isStarted = false;
  for await (const piece of pieces) {
    const { id, model } = piece.kind === "delta" ? piece : piece.reply;
    if (!isStarted) yield { type: "message_start", message: emptyMessageOf(id, model) };
    isStarted = true;
    if (piece.kind === "delta") yield* blocks.eventsOf(piece.delta);
    else {
      yield* blocks.end();
      yield* endEvents(piece.reply);
    }
  }
}

function* endEvents(reply: Reply): Generator<Event> {
  yield {
    type: "message_delta",
    delta: endDeltaOf(reply),
    usage: messageUsageOf(reply),
    balanceMicros: reply.balanceMicros,
  };
  yield { type: "message_stop" };
}

type Kind = "text" | "thinking" | "tool_use";

/**
 * Writes one block at a time, as Anthropic's clients expect. The end of a tool call is known only at the end of the
 * reply, so all pieces that do not belong to the first call wait until then.
 */
class BlockEvents {
  #index = -1;
  #open: Kind | undefined;
  #openCall = -1;
  /** The calls after the first one, in their order. */
  readonly #waitingCalls = new Map<number, ToolCallDelta>();
  /** Texts and reasoning after the first call. */
  readonly #waiting: Exclude<Delta, { kind: "tool_call" }>[] = [];

  *eventsOf(delta: Delta): Generator<Event> {
    if (this.#open === "tool_use" && delta.kind !== "tool_call") {
      this.#waiting.push(delta);
      return;
    }
    switch (delta.kind) {
      case "text":
        if (this.#open !== "text") yield* this.#start("text", { type: "text", text: "" });
        yield this.#change({ type: "text_delta", text: delta.text });
        return;
      case "reasoning":
        yield* this.#reasoning(delta.reasoning);
        return;
      case "tool_call":
        yield* this.#toolCall(delta.toolCall);
        return;
    }
  }

  /** Ends the open block and writes all pieces that wait. */
  *end(): Generator<Event> {
    yield* this.#stop();
    for (const delta of this.#waiting) yield* this.eventsOf(delta);
    for (const call of this.#waitingCalls.values()) yield* this.#startCall(call);
    yield* this.#stop();
  }

  *#reasoning({ text, signature, encrypted }: Reasoning): Generator<Event> {
    if (text !== "" || signature !== undefined) yield* this.#thinking(text);
    if (signature !== undefined) {
      yield this.#change({ type: "signature_delta", signature });
      yield* this.#stop();
    }
    if (encrypted === undefined) return;
    yield* this.#start("thinking", redactedBlock(encrypted));
    yield* this.#stop();
  }

  *#thinking(text: string): Generator<Event> {
    if (this.#open !== "thinking") {
      yield* this.#start("thinking", { type: "thinking", thinking: "", signature: "" });
    }
    if (text !== "") yield this.#change({ type: "thinking_delta", thinking: text });
  }

  *#toolCall(call: ToolCallDelta): Generator<Event> {
    if (this.#open !== "tool_use") {
      yield* this.#startCall(call);
    } else if (call.index === this.#openCall) {
      yield* this.#inputDelta(call);
    } else {
      const earlier = this.#waitingCalls.get(call.index);
      const joined = earlier ? { ...earlier, arguments: earlier.arguments + call.arguments } : call;
      this.#waitingCalls.set(call.index, joined);
    }
  }

  *#startCall(call: ToolCallDelta): Generator<Event> {
    const { id, name } = call;
    yield* this.#start("tool_use", startedToolUse(id, name));
    this.#openCall = call.index;
    yield* this.#inputDelta(call);
  }

  *#inputDelta({ arguments: text }: ToolCallDelta): Generator<Event> {
    if (text !== "") yield this.#change({ type: "input_json_delta", partialJson: text });
  }

  *#start(kind: Kind, contentBlock: Block): Generator<Event> {
    yield* this.#stop();
    this.#open = kind;
    this.#index++;
    yield { type: "content_block_start", index: this.#index, contentBlock };
  }

  *#stop(): Generator<Event> {
    if (this.#open === undefined) return;
    this.#open = undefined;
    yield { type: "content_block_stop", index: this.#index };
  }

  #change(delta: NonNullable<Event["delta"]>): Event {
    return { type: "content_block_delta", index: this.#index, delta };
  }
}
