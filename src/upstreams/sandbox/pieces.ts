import type { Delta, FinishReason } from "../../domain/output.ts";
import type { Prompt } from "../../domain/prompt.ts";
import { type NextToken, nextOf, type Plan, type Segment } from "./plan.ts";

const PIECE_TOKENS = 4;

type Open = {
  readonly segment: Segment;
  readonly nextToken: NextToken;
  /** Its tokens within max_tokens, and before the stop text. */
  readonly count: number;
  readonly stop: string | undefined;
};

/** The pieces of a planned reply within max_tokens and the stop texts, and what it used at its end. */
export class SandboxPieces {
  readonly #plan: Plan;
  readonly #stop: readonly string[];
  #position = 0;
  #open: Open | undefined;
  /** Tokens of the open segment that were sent. */
  #sent = 0;
  #tokensLeft: number;
  #isFailing = false;
  outputTokens = 0;
  reasoningTokens = 0;
  finishReason: FinishReason = "stop";
  stopSequence: string | undefined;

  constructor(plan: Plan, { maxTokens, stop }: Pick<Prompt, "maxTokens" | "stop">) {
    this.#plan = plan;
    this.#tokensLeft = maxTokens;
    this.#stop = stop;
    this.#openNext();
  }

  /** Whether the reply has another group of tokens. */
  get hasMore(): boolean {
    return this.#open !== undefined && !this.#isFailing;
  }

  /** Whether the reply ends with the failure that the prompt requests. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** The deltas of the next group of tokens, and the one that follows the last group of its segment. */
  take(): readonly Delta[] {
    const open = this.#open;
    if (!open) return [];
    const { part, count: planned } = open.segment;
    const isFirst = this.#sent === 0;
    const piece = this.#piece(open);
    const deltas = piece === "" ? [] : [deltaOf(part, piece, isFirst)];
    this.#isFailing = this.#mustFail();
    if (this.#isFailing || this.#sent < open.count) return deltas;
    if (part.kind === "reasoning" && open.count === planned)
      deltas.push({ kind: "reasoning", reasoning: { ...UNSIGNED, signature: part.signature } });
    this.#close(open);
    return deltas;
  }

  #piece({ nextToken, count }: Open): string {
    let piece = "";
    const end = Math.min(count, this.#sent + PIECE_TOKENS);
    while (this.#sent < end && !this.#mustFail()) {
      piece += nextToken();
      this.#sent++;
      this.outputTokens++;
      this.#tokensLeft--;
    }
    return piece;
  }

  #close({ segment: { part, count: planned }, count, stop }: Open): void {
    if (part.kind === "reasoning") this.reasoningTokens += count;
    else if (part.kind === "tool_call") this.finishReason = "tool_calls";
    this.#open = undefined;
    if (stop !== undefined) this.stopSequence = stop;
    else if (count < planned) this.finishReason = "length";
    else this.#openNext();
  }

  #openNext(): void {
    const segment = this.#plan.segments[this.#position++];
    if (!segment) return;
    const count = Math.min(segment.count, this.#tokensLeft);
    const open = cutAtStop(segment, count, this.#stop) ?? { segment, count, nextToken: segment.tokens(), stop: undefined };
    this.#sent = 0;
    if (open.count === 0) this.#close(open);
    else this.#open = open;
  }

  #mustFail(): boolean {
    return this.outputTokens === this.#plan.directive.fail_after;
  }
}

const UNSIGNED = { text: "", signature: undefined, encrypted: undefined };

function deltaOf(part: Segment["part"], text: string, isFirst: boolean): Delta {
  switch (part.kind) {
    case "text":
      return { kind: "text", text };
    case "reasoning":
      return { kind: "reasoning", reasoning: { ...UNSIGNED, text } };
    case "tool_call": {
      const [id, name] = isFirst ? [part.id, part.name] : ["", ""];
      return { kind: "tool_call", toolCall: { index: part.index, id, name, arguments: text } };
    }
  }
}

/** A text that ends before the stop text that is complete first; undefined if it has none. A part of a token counts as one. */
function cutAtStop(segment: Segment, count: number, stops: readonly string[]): Open | undefined {
  if (segment.part.kind !== "text" || stops.length === 0) return undefined;
  const tokens = Array.from({ length: count }, segment.tokens());
  const text = tokens.join("");
  const found = stops.flatMap((stop) => {
    const start = text.indexOf(stop);
    return stop === "" || start < 0 ? [] : [{ stop, start, end: start + stop.length }];
  });
  const [first] = found.sort((one, other) => one.end - other.end || one.start - other.start);
  if (!first) return undefined;
  const kept: string[] = [];
  let left = first.start;
  for (const token of tokens) {
    if (left <= 0) break;
    kept.push(token.slice(0, left));
    left -= token.length;
  }
  return { segment, count: kept.length, nextToken: nextOf(kept), stop: first.stop };
}
