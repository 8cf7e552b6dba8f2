import type { Delta } from "../domain/output.ts";

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
