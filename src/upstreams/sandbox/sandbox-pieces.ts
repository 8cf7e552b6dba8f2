import type { Delta, FinishReason } from "../../domain/output.ts";
import type { Prompt } from "../../domain/prompt.ts";
import { requestedFailure } from "./sandbox-directive.ts";
import type { Plan, Segment } from "./sandbox-plan.ts";
import { tokensWithin } from "./sandbox-text.ts";
import { StopTexts } from "./stop-texts.ts";

const PIECE_TOKENS = 4;

/** The pieces of a planned reply within max_tokens and the stop texts, and what it used at its end. */
export class SandboxPieces {
  readonly #plan: Plan;
  readonly #stop: readonly string[];
  #tokensLeft: number;
  #produced = 0;
  outputTokens = 0;
  reasoningTokens = 0;
  finishReason: FinishReason = "stop";

  constructor(plan: Plan, { maxTokens, stop }: Pick<Prompt, "maxTokens" | "stop">) {
    this.#plan = plan;
    this.#tokensLeft = maxTokens;
    this.#stop = stop;
  }

  /** Yields undefined before each piece: the reader waits there. */
  *[Symbol.iterator](): Generator<Delta | undefined, void, undefined> {
    for (const segment of this.#plan.segments) {
      const count = Math.min(segment.count, this.#tokensLeft);
      if (segment.part.kind === "text") {
        if (yield* this.#text(segment, count)) return;
      } else {
        yield* this.#opaque(segment, segment.part, count);
      }
      if (count < segment.count) {
        this.finishReason = "length";
        return;
      }
    }
  }

  /** Returns true if a stop text ended the reply. */
  *#text(segment: Segment, count: number): Generator<Delta | undefined, boolean, undefined> {
    const stops = new StopTexts(this.#stop);
    const earlierTokens = this.outputTokens;
    let characters = 0;
    for (const piece of this.#pieces(segment, count)) {
      if (piece === undefined) {
        yield undefined;
        continue;
      }
      const text = stops.filter(piece);
      characters += text.length;
      if (text !== "") yield { kind: "text", text };
      if (stops.stopped) {
        this.outputTokens = earlierTokens + tokensWithin(segment.tokens(), characters);
        return true;
      }
      this.#failIfRequested();
    }
    const rest = stops.flush();
    if (rest !== "") yield { kind: "text", text: rest };
    return false;
  }

  /** Reasoning, or a tool call: stop texts do not apply to them. */
  *#opaque(
    segment: Segment,
    part: Exclude<Segment["part"], { kind: "text" }>,
    count: number,
  ): Generator<Delta | undefined, void, undefined> {
    let isFirst = true;
    for (const piece of this.#pieces(segment, count)) {
      if (piece === undefined) {
        yield undefined;
        continue;
      }
      if (piece !== "") {
        if (part.kind === "reasoning") yield { kind: "reasoning", reasoning: unsigned(piece) };
        else yield { kind: "tool_call", toolCall: { ...headOf(part, isFirst), arguments: piece } };
      }
      isFirst = false;
      this.#failIfRequested();
    }
    if (part.kind === "reasoning") {
      this.reasoningTokens += count;
      if (count === segment.count) {
        yield { kind: "reasoning", reasoning: { ...unsigned(""), signature: part.signature } };
      }
    } else {
      this.finishReason = "tool_calls";
    }
  }

  /** Groups of tokens; undefined before each. */
  *#pieces(segment: Segment, count: number): Generator<string | undefined, void, undefined> {
    const tokens = segment.tokens()[Symbol.iterator]();
    for (let made = 0; made < count; ) {
      yield undefined;
      let piece = "";
      for (const end = Math.min(count, made + PIECE_TOKENS); made < end && !this.#mustFail(); made++) {
        piece += tokens.next().value ?? "";
        this.#produced++;
        this.outputTokens++;
        this.#tokensLeft--;
      }
      yield piece;
    }
  }

  #mustFail(): boolean {
    return this.#produced === this.#plan.directive.fail_after;
  }

  #failIfRequested(): void {
    if (this.#mustFail()) throw requestedFailure();
  }
}

function unsigned(text: string) {
  return { text, signature: undefined, encrypted: undefined };
}

function headOf(
  part: { readonly index: number; readonly id: string; readonly name: string },
  isFirst: boolean,
) {
  return { index: part.index, id: isFirst ? part.id : "", name: isFirst ? part.name : "" };
}
