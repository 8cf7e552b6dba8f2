import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StreamResponseResponseSchema } from "../../../gen/vx/openai/v1/responses_pb.js";
import type { Delta } from "../../domain/output.ts";
import { valueOfJson } from "../../rules/plain-values.ts";
import {
  callItem,
  type Item,
  itemIdOf,
  messageItem,
  reasoningItem,
  summaryPartOf,
  textPartOf,
} from "./responses-items.ts";

export type StreamedEvent = MessageInitShape<typeof StreamResponseResponseSchema>;

/** An item of a streamed response that has not ended. */
export type OpenItem = {
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
export function openItemFor(
  delta: Delta,
  { generationId, isEncryptedIncluded }: { generationId: string; isEncryptedIncluded: boolean },
  positions: Record<Kind, number>,
): OpenItem {
  const kind = KINDS[delta.kind];
  const id = itemIdOf(kind, generationId, positions[kind]++);
  switch (delta.kind) {
    case "text":
      return new OpenMessage(id);
    case "tool_call":
      return new OpenCall(id, delta.toolCall);
    case "reasoning":
      return new OpenReasoning(id, isEncryptedIncluded);
  }
}

const NO_LOGPROBS = valueOfJson([]);

class OpenMessage implements OpenItem {
  readonly kind = "message";
  readonly #id: string;
  readonly #place: { readonly itemId: string; readonly contentIndex: 0 };
  #text = "";

  constructor(id: string) {
    this.#id = id;
    this.#place = { itemId: id, contentIndex: 0 };
  }

  accepts({ kind }: Delta): boolean {
    return kind === "text";
  }

  *start(): Generator<StreamedEvent> {
    const item = messageItem(this.#id, undefined, "in_progress");
    yield { type: "response.output_item.added", item };
    yield { type: "response.content_part.added", ...this.#place, part: valueOfJson(textPartOf("")) };
  }

  *append(delta: Delta): Generator<StreamedEvent> {
    if (delta.kind !== "text" || delta.text === "") return;
    this.#text += delta.text;
    const logprobs = NO_LOGPROBS;
    yield { type: "response.output_text.delta", ...this.#place, delta: delta.text, logprobs };
  }

  *end(): Generator<StreamedEvent> {
    const text = this.#text;
    yield { type: "response.output_text.done", ...this.#place, text, logprobs: NO_LOGPROBS };
    yield { type: "response.content_part.done", ...this.#place, part: valueOfJson(textPartOf(text)) };
  }

  item(status: "completed" | "incomplete"): Item {
    return messageItem(this.#id, this.#text, status);
  }
}

class OpenCall implements OpenItem {
  readonly kind = "call";
  readonly #itemId: string;
  readonly #index: number;
  readonly #id: string;
  readonly #name: string;
  #arguments = "";

  constructor(itemId: string, { index, id, name }: { index: number; id: string; name: string }) {
    this.#itemId = itemId;
    this.#index = index;
    this.#id = id;
    this.#name = name;
  }

  accepts(delta: Delta): boolean {
    return delta.kind === "tool_call" && delta.toolCall.index === this.#index;
  }

  *start(): Generator<StreamedEvent> {
    const call = { id: this.#id, name: this.#name, arguments: "" };
    yield { type: "response.output_item.added", item: callItem(this.#itemId, call, "in_progress") };
  }

  *append(delta: Delta): Generator<StreamedEvent> {
    if (delta.kind !== "tool_call" || delta.toolCall.arguments === "") return;
    const { arguments: text } = delta.toolCall;
    this.#arguments += text;
    yield { type: "response.function_call_arguments.delta", itemId: this.#itemId, delta: text };
  }

  *end(): Generator<StreamedEvent> {
    yield {
      type: "response.function_call_arguments.done",
      itemId: this.#itemId,
      arguments: this.#arguments,
    };
  }

  item(status: "completed" | "incomplete"): Item {
    const call = { id: this.#id, name: this.#name, arguments: this.#arguments };
    return callItem(this.#itemId, call, status);
  }
}

class OpenReasoning implements OpenItem {
  readonly kind = "reasoning";
  readonly #id: string;
  readonly #place: { readonly itemId: string; readonly summaryIndex: 0 };
  readonly #isEncryptedIncluded: boolean;
  #text = "";
  #signature: string | undefined;
  #encrypted: string | undefined;

  constructor(id: string, isEncryptedIncluded: boolean) {
    this.#id = id;
    this.#place = { itemId: id, summaryIndex: 0 };
    this.#isEncryptedIncluded = isEncryptedIncluded;
  }

  /** A signature or an encrypted form is the last piece of a block. */
  accepts({ kind }: Delta): boolean {
    return kind === "reasoning" && this.#signature === undefined && this.#encrypted === undefined;
  }

  *start(): Generator<StreamedEvent> {
    const block = { text: "", signature: undefined, encrypted: undefined };
    yield { type: "response.output_item.added", item: reasoningItem(this.#id, block, false) };
  }

  *append(delta: Delta): Generator<StreamedEvent> {
    if (delta.kind !== "reasoning") return;
    const { text, signature, encrypted } = delta.reasoning;
    this.#signature = signature;
    this.#encrypted = encrypted;
    if (text === "") return;
    if (this.#text === "") {
      const part = valueOfJson(summaryPartOf(""));
      yield { type: "response.reasoning_summary_part.added", ...this.#place, part };
    }
    this.#text += text;
    yield { type: "response.reasoning_summary_text.delta", ...this.#place, delta: text };
  }

  *end(): Generator<StreamedEvent> {
    const text = this.#text;
    if (text === "") return;
    yield { type: "response.reasoning_summary_text.done", ...this.#place, text };
    const part = valueOfJson(summaryPartOf(text));
    yield { type: "response.reasoning_summary_part.done", ...this.#place, part };
  }

  item(): Item {
    const block = { text: this.#text, signature: this.#signature, encrypted: this.#encrypted };
    return reasoningItem(this.#id, block, this.#isEncryptedIncluded);
  }
}
