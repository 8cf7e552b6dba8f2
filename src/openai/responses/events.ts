import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StreamResponseResponseSchema } from "../../../gen/vx/openai/v1/responses_pb.js";
import { type Delta, deltasOf, OutputBuilder, type ToolCallDelta } from "../../domain/output.ts";
import type { Reasoning } from "../../domain/prompt.ts";
import type { Reply } from "../../generations/generation-request.ts";
import { valueOfJson } from "../../rules/untyped-values.ts";
import { callItem, type Item, itemIdOf, messageItem, reasoningItem, summaryPartOf, textPartOf } from "./items.ts";
import { failedResponse, finishedResponse, isIncomplete, type ResponseInit, startedResponse } from "./reply.ts";

type StreamedResponse = {
  readonly generationId: string;
  readonly model: string;
  readonly settings: ResponseInit;
  readonly isEncryptedIncluded: boolean;
};

/**
 * Creates the events of a streamed response. An item ends before the next one starts. A function call ends only
 * with the reply, because its pieces may alternate with those of other calls: later items are sent whole.
 */
export class ResponseEvents {
  readonly #response: StreamedResponse;
  readonly #items: Item[] = [];
  readonly #positions = { message: 0, call: 0, reasoning: 0 };
  #open: OpenItem | undefined;
  /** The pieces after those of the open call. */
  #later: OutputBuilder | undefined;
  #sequenceNumber = 0;

  constructor(response: StreamedResponse) {
    this.#response = response;
  }

  *start(): Generator<StreamedEvent> {
    const response = this.#started;
    yield this.#event({ type: "response.created", response });
    yield this.#event({ type: "response.in_progress", response });
  }

  *append(delta: Delta): Generator<StreamedEvent> {
    const open = this.#open;
    if (open?.kind !== "call") {
      yield* this.#appendToItem(delta);
    } else if (open.accepts(delta)) {
      yield* this.#eventsOf(open.append(delta));
    } else {
      this.#later ??= new OutputBuilder();
      this.#later.append(delta.kind === "tool_call" ? withoutFirstCall(delta) : delta);
    }
  }

  *end(reply: Reply): Generator<StreamedEvent> {
    if (this.#later) {
      for (const delta of deltasOf(this.#later.output)) {
        yield* this.#endItem("completed");
        yield* this.#appendToItem(delta);
      }
    }
    // An empty reply is an empty message.
    if (this.#items.length === 0 && !this.#open) yield* this.#appendToItem({ kind: "text", text: "" });
    yield* this.#endItem(isIncomplete(reply) ? "incomplete" : "completed");
    const response = finishedResponse(reply, this.#items, this.#response.settings);
    yield this.#event({ type: `response.${response.status}`, response });
  }

  failed(error: unknown): StreamedEvent {
    const response = failedResponse(this.#started, this.#items, error);
    return this.#event({ type: "response.failed", response });
  }

  get #started(): ResponseInit {
    const { generationId, model, settings } = this.#response;
    return startedResponse(generationId, model, settings);
  }

  *#appendToItem(delta: Delta): Generator<StreamedEvent> {
    if (!this.#open?.accepts(delta)) {
      yield* this.#endItem("completed");
      this.#open = openItemFor(delta, this.#response, this.#positions);
      yield* this.#eventsOf(this.#open.start());
    }
    yield* this.#eventsOf(this.#open.append(delta));
  }

  *#endItem(status: "completed" | "incomplete"): Generator<StreamedEvent> {
    const open = this.#open;
    if (!open) return;
    yield* this.#eventsOf(open.end());
    const item = open.item(status);
    yield this.#event({ type: "response.output_item.done", outputIndex: this.#items.length, item });
    this.#items.push(item);
    this.#open = undefined;
  }

  *#eventsOf(events: Iterable<StreamedEvent>): Generator<StreamedEvent> {
    for (const event of events) yield this.#event({ ...event, outputIndex: this.#items.length });
  }

  #event(event: StreamedEvent): StreamedEvent {
    return { ...event, sequenceNumber: this.#sequenceNumber++ };
  }
}

/** The calls after the first one, counted from 0. */
function withoutFirstCall({ kind, toolCall }: Delta & { kind: "tool_call" }): Delta {
  return { kind, toolCall: { ...toolCall, index: toolCall.index - 1 } };
}

type StreamedEvent = MessageInitShape<typeof StreamResponseResponseSchema>;

/** An item of a streamed response that has not ended. */
type OpenItem = {
  readonly kind: Kind;
  /** Whether the piece belongs to this item. */
  accepts(delta: Delta): boolean;
  start(): Iterable<StreamedEvent>;
  append(delta: Delta): Iterable<StreamedEvent>;
  end(): Iterable<StreamedEvent>;
  item(status: "completed" | "incomplete"): Item;
};

type Kind = "message" | "call" | "reasoning";

const KINDS = { text: "message", tool_call: "call", reasoning: "reasoning" } as const;

/** `positions` counts the items of each kind. */
function openItemFor(
  delta: Delta,
  { generationId, isEncryptedIncluded }: { generationId: string; isEncryptedIncluded: boolean },
  positions: Record<Kind, number>,
): OpenItem {
  const kind = KINDS[delta.kind];
  const id = itemIdOf(kind, generationId, positions[kind]++);
  switch (delta.kind) {
    case "text":
      return openMessage(id);
    case "tool_call":
      return openCall(id, delta.toolCall);
    case "reasoning":
      return openReasoning(id, isEncryptedIncluded);
  }
}

const NO_LOGPROBS = valueOfJson([]);

function openMessage(id: string): OpenItem {
  const place = { itemId: id, contentIndex: 0 };
  let text = "";
  return {
    kind: "message",
    accepts: ({ kind }) => kind === "text",
    *start() {
      yield { type: "response.output_item.added", item: messageItem(id, undefined, "in_progress") };
      yield { type: "response.content_part.added", ...place, part: valueOfJson(textPartOf("")) };
    },
    *append(delta) {
      if (delta.kind !== "text" || delta.text === "") return;
      text += delta.text;
      yield { type: "response.output_text.delta", ...place, delta: delta.text, logprobs: NO_LOGPROBS };
    },
    *end() {
      yield { type: "response.output_text.done", ...place, text, logprobs: NO_LOGPROBS };
      yield { type: "response.content_part.done", ...place, part: valueOfJson(textPartOf(text)) };
    },
    item: (status) => messageItem(id, text, status),
  };
}

function openCall(itemId: string, { index, id, name }: ToolCallDelta): OpenItem {
  let text = "";
  const item = (status: Parameters<typeof callItem>[2]) => callItem(itemId, { id, name, arguments: text }, status);
  return {
    kind: "call",
    accepts: (delta) => delta.kind === "tool_call" && delta.toolCall.index === index,
    *start() {
      yield { type: "response.output_item.added", item: item("in_progress") };
    },
    *append(delta) {
      if (delta.kind !== "tool_call" || delta.toolCall.arguments === "") return;
      text += delta.toolCall.arguments;
      yield { type: "response.function_call_arguments.delta", itemId, delta: delta.toolCall.arguments };
    },
    *end() {
      yield { type: "response.function_call_arguments.done", itemId, arguments: text };
    },
    item,
  };
}

function openReasoning(id: string, isEncryptedIncluded: boolean): OpenItem {
  const place = { itemId: id, summaryIndex: 0 };
  let block: Reasoning = { text: "", signature: undefined, encrypted: undefined };
  return {
    kind: "reasoning",
    // A signature or an encrypted form is the last piece of a block.
    accepts: ({ kind }) => kind === "reasoning" && block.signature === undefined && block.encrypted === undefined,
    *start() {
      yield { type: "response.output_item.added", item: reasoningItem(id, block, false) };
    },
    *append(delta) {
      if (delta.kind !== "reasoning") return;
      const { text } = delta.reasoning;
      const isFirst = block.text === "";
      block = { ...delta.reasoning, text: block.text + text };
      if (text === "") return;
      if (isFirst) {
        yield { type: "response.reasoning_summary_part.added", ...place, part: valueOfJson(summaryPartOf("")) };
      }
      yield { type: "response.reasoning_summary_text.delta", ...place, delta: text };
    },
    *end() {
      const { text } = block;
      if (text === "") return;
      yield { type: "response.reasoning_summary_text.done", ...place, text };
      yield { type: "response.reasoning_summary_part.done", ...place, part: valueOfJson(summaryPartOf(text)) };
    },
    item: () => reasoningItem(id, block, isEncryptedIncluded),
  };
}
