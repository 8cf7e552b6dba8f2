import type { Delta, FinishReason } from "../../domain/output.ts";
import type { Prompt } from "../../domain/prompt.ts";
import type { Plan, Segment } from "./sandbox-plan.ts";
import type { NextToken } from "./sandbox-text.ts";
import { type SegmentWriter, writerOf } from "./sandbox-writers.ts";

const PIECE_TOKENS = 4;

/** The segment that is being sent. */
type Open = {
  readonly segment: Segment;
  readonly nextToken: NextToken;
  readonly writer: SegmentWriter;
  /** Its tokens within max_tokens. */
  readonly count: number;
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
  #produced = 0;
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

  get hasStarted(): boolean {
    return this.#produced > 0;
  }

  /** Whether the reply ends with the failure that the prompt requests. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** The deltas of the next group of tokens, and those that follow the last group of its segment. */
  take(): readonly Delta[] {
    const open = this.#open;
    if (!open) return [];
    const { writer, segment, count, nextToken } = open;
    const earlierTokens = this.outputTokens - this.#sent;
    const delta = writer.write(this.#piece(nextToken, count));
    const stopped = writer.stopped();
    if (stopped) {
      this.outputTokens = earlierTokens + stopped.tokens;
      this.stopSequence = stopped.stop;
      this.#open = undefined;
      return listOf(delta);
    }
    this.#isFailing = this.#mustFail();
    if (this.#isFailing || this.#sent < count) return listOf(delta);
    this.#closeSegment(segment, count);
    return listOf(delta, writer.end(count === segment.count));
  }

  #piece(nextToken: NextToken, count: number): string {
    let piece = "";
    const end = Math.min(count, this.#sent + PIECE_TOKENS);
    while (this.#sent < end && !this.#mustFail()) {
      piece += nextToken();
      this.#sent++;
      this.#produced++;
      this.outputTokens++;
      this.#tokensLeft--;
    }
    return piece;
  }

  #closeSegment({ part, count: planned }: Segment, count: number): void {
    if (part.kind === "reasoning") this.reasoningTokens += count;
    else if (part.kind === "tool_call") this.finishReason = "tool_calls";
    this.#open = undefined;
    if (count < planned) this.finishReason = "length";
    else this.#openNext();
  }

  #openNext(): void {
    const segment = this.#plan.segments[this.#position++];
    if (!segment) return;
    const count = Math.min(segment.count, this.#tokensLeft);
    this.#sent = 0;
    if (count === 0) this.#closeSegment(segment, count);
    else this.#open = { segment, count, nextToken: segment.tokens(), writer: writerOf(segment, this.#stop) };
  }

  #mustFail(): boolean {
    return this.#produced === this.#plan.directive.fail_after;
  }
}

function listOf(first: Delta | undefined, second?: Delta): readonly Delta[] {
  const list = first ? [first] : [];
  if (second) list.push(second);
  return list;
}
