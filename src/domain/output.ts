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

/** The content of a reply. */
export type Output = {
  readonly text: string;
  readonly reasoning: readonly Reasoning[];
  readonly toolCalls: readonly ToolCall[];
};

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

type OpenBlock = { text: string; signature: string | undefined; encrypted: string | undefined };
type OpenCall = { id: string; name: string; arguments: string };

const NONE: readonly never[] = [];

/** Joins the pieces of a reply. Replies of only text create no lists. */
export class OutputBuilder {
  #text = "";
  #reasoning: OpenBlock[] | undefined;
  #isBlockOpen = false;
  #toolCalls: OpenCall[] | undefined;

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

/** The texts of a reply without its reasoning. */
export function textsOfReply({ text, toolCalls }: Output): string[] {
  const calls = toolCalls.flatMap((call) => [call.name, call.arguments]);
  return text === "" ? calls : [text, ...calls];
}

/** The texts of the reasoning. Signatures and encrypted forms repeat text or are not tokens of the reply. */
export function textsOfReasoning({ reasoning }: Output): string[] {
  return reasoning.map(({ text }) => text).filter((text) => text !== "");
}
