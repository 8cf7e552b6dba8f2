import type { Reasoning, ToolCall } from "./prompt.ts";

/** A piece of a streamed reply. Texts and arguments are never empty. */
export type Delta =
  | { readonly kind: "text"; readonly text: string }
  /** A part of a reasoning block. The text is appended to the current block; a signature or encrypted form ends it. */
  | { readonly kind: "reasoning"; readonly reasoning: Reasoning }
  | { readonly kind: "tool_call"; readonly toolCall: ToolCallDelta };

/** The first piece of each call has its id and name; in all others they are empty. */
export type ToolCallDelta = {
  /** The position of the call among those of the reply, from 0, in the order of their first pieces. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  /** JSON text to append to the arguments. */
  readonly arguments: string;
};

export type Output = {
  readonly text: string;
  readonly reasoning: readonly Reasoning[];
  readonly toolCalls: readonly ToolCall[];
};

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

type OpenBlock = { text: string; signature: string | undefined; encrypted: string | undefined };

const NONE: readonly never[] = [];

/** Joins the pieces of a reply. Replies of only text create no lists. */
export class OutputBuilder {
  #text = "";
  #reasoning: OpenBlock[] | undefined;
  #isBlockOpen = false;
  #toolCalls: { id: string; name: string; arguments: string }[] | undefined;

  append(delta: Delta): void {
    switch (delta.kind) {
      case "text":
        this.#text += delta.text;
        return;
      case "reasoning":
        this.#appendReasoning(delta.reasoning);
        return;
      case "tool_call":
        this.#appendToolCall(delta.toolCall);
        return;
    }
  }

  get output(): Output {
    return { text: this.#text, reasoning: this.#reasoning ?? NONE, toolCalls: this.#toolCalls ?? NONE };
  }

  #appendReasoning({ text, signature, encrypted }: Reasoning): void {
    this.#reasoning ??= [];
    const block = this.#isBlockOpen ? this.#reasoning.at(-1) : undefined;
    if (block) {
      block.text += text;
      block.signature = signature;
      block.encrypted = encrypted;
    } else {
      this.#reasoning.push({ text, signature, encrypted });
    }
    this.#isBlockOpen = signature === undefined && encrypted === undefined;
  }

  #appendToolCall({ index, id, name, arguments: text }: ToolCallDelta): void {
    this.#toolCalls ??= [];
    const call = this.#toolCalls[index];
    if (call) call.arguments += text;
    else this.#toolCalls[index] = { id, name, arguments: text };
  }
}

/** The pieces of a complete reply, for a stream that repeats an earlier one. */
export function* deltasOf({ text, reasoning, toolCalls }: Output): Generator<Delta, void, undefined> {
  for (const block of reasoning) yield { kind: "reasoning", reasoning: block };
  if (text !== "") yield { kind: "text", text };
  for (const [index, call] of toolCalls.entries()) yield { kind: "tool_call", toolCall: { index, ...call } };
}

export function isEmpty({ text, reasoning, toolCalls }: Output): boolean {
  return text === "" && reasoning.length === 0 && toolCalls.length === 0;
}

export function textsOfReply({ text, toolCalls }: Output): string[] {
  const calls = toolCalls.flatMap((call) => [call.name, call.arguments]);
  return text === "" ? calls : [text, ...calls];
}

/** The texts of the reasoning. Signatures and encrypted forms repeat text or are not tokens of the reply. */
export function textsOfReasoning({ reasoning }: Output): string[] {
  return reasoning.map(({ text }) => text).filter((text) => text !== "");
}

/**
 * The pieces that the reader has not taken, in their order. Consecutive texts, and consecutive parts of one tool call
 * or one reasoning block, are joined: a slow reader gets fewer, longer pieces. A reply of only text is one string.
 */
export class UnreadDeltas {
  /** Pieces before the text; those before the head are taken. */
  #queue: Delta[] = [];
  #head = 0;
  #text = "";

  get isEmpty(): boolean {
    return this.#text === "" && this.#head === this.#queue.length;
  }

  appendText(text: string): void {
    this.#text += text;
  }

  append(delta: Delta): void {
    if (delta.kind === "text") {
      this.appendText(delta.text);
      return;
    }
    this.#flushText();
    const last = this.#head < this.#queue.length ? this.#queue.at(-1) : undefined;
    const joined = last && joinedOf(last, delta);
    if (joined) this.#queue[this.#queue.length - 1] = joined;
    else this.#queue.push(delta);
  }

  take(): Delta | undefined {
    const delta = this.#queue[this.#head];
    if (delta) {
      this.#head++;
      if (this.#head === this.#queue.length) this.#clearQueue();
      return delta;
    }
    if (this.#text === "") return undefined;
    const text = this.#text;
    this.#text = "";
    return { kind: "text", text };
  }

  *takeAll(): Generator<Delta, void, undefined> {
    for (let delta = this.take(); delta; delta = this.take()) yield delta;
  }

  /** Takes all pieces; returns their texts. */
  takeTexts(): string {
    const texts = this.#queue.slice(this.#head).map(textOf).join("") + this.#text;
    this.#clearQueue();
    this.#text = "";
    return texts;
  }

  #clearQueue(): void {
    this.#queue = [];
    this.#head = 0;
  }

  #flushText(): void {
    if (this.#text === "") return;
    this.#queue.push({ kind: "text", text: this.#text });
    this.#text = "";
  }
}

function joinedOf(last: Delta, next: Delta): Delta | undefined {
  if (last.kind === "tool_call" && next.kind === "tool_call" && last.toolCall.index === next.toolCall.index) {
    const text = last.toolCall.arguments + next.toolCall.arguments;
    return { kind: "tool_call", toolCall: { ...last.toolCall, arguments: text } };
  }
  if (last.kind === "reasoning" && next.kind === "reasoning") {
    const { text, signature, encrypted } = last.reasoning;
    if (signature !== undefined || encrypted !== undefined) return undefined;
    return { kind: "reasoning", reasoning: { ...next.reasoning, text: text + next.reasoning.text } };
  }
  return undefined;
}

function textOf(delta: Delta): string {
  switch (delta.kind) {
    case "text":
      return delta.text;
    case "reasoning":
      return delta.reasoning.text;
    case "tool_call":
      return delta.toolCall.name + delta.toolCall.arguments;
  }
}
