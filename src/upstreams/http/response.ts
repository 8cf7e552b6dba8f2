import type { FinishReason, TokenUsage } from "../../domain/prompt.ts";
import type { UpstreamFailure } from "../runner/failure.ts";
import type { UpstreamEvent } from "../upstream.ts";
import { charsMax, isBeyond } from "./response-limits.ts";

/**
 * The received, unread part of a reply. Unread pieces are joined: a slow reader gets fewer, longer pieces, so
 * there is one string and no queue.
 */
export class Answer {
  readonly #maxTokens: number;
  #text = "";
  #pieces = 0;
  #chars = 0;
  #finishReason: FinishReason | undefined;
  #usage: TokenUsage | undefined;
  #complete = false;
  #cut = false;
  #failed = false;
  #failure: unknown;
  #wake: (() => void) | undefined;

  constructor(maxTokens: number) {
    this.#maxTokens = maxTokens;
  }

  /** True after the end of the reply or a failure; later data is ignored. */
  get isOver(): boolean {
    return this.#complete || this.#failed;
  }

  get isComplete(): boolean {
    return this.#complete;
  }

  /** Complete because the upstream exceeded a limit. */
  get wasCut(): boolean {
    return this.#cut;
  }

  get unreadChars(): number {
    return this.#text.length;
  }

  /** Ends a reply that exceeds max_tokens, as a server that enforces the limit does. */
  add(piece: string): void {
    if (piece === "" || this.isOver) return;
    const room = charsMax(this.#maxTokens) - this.#chars;
    this.#text += piece.length > room ? cut(piece, room) : piece;
    this.#pieces++;
    this.#chars += piece.length;
    if (piece.length <= room && !isBeyond(this.#maxTokens, this.#pieces, this.#chars)) return;
    this.#cut = true;
    this.#finishReason = "length";
    this.#usage = undefined;
    this.complete();
  }

  finish(reason: FinishReason): void {
    if (!this.isOver) this.#finishReason = reason;
  }

  report(usage: TokenUsage | undefined): void {
    if (!this.isOver && usage) this.#usage = usage;
  }

  /** Called when the upstream signals the end of the reply. */
  complete(): void {
    if (this.isOver) return;
    this.#finishReason ??= "stop";
    this.#complete = true;
  }

  /**
   * Called at the end of the response or on its failure. After a finish reason the reply counts as complete.
   */
  end(failure: UpstreamFailure): void {
    if (this.#finishReason === undefined) this.fail(failure);
    else this.complete();
  }

  fail(failure: unknown): void {
    if (this.isOver) return;
    this.#failed = true;
    this.#failure = failure;
  }

  /** Called when the call is aborted. Returns the unread text. */
  abort(reason: unknown): string {
    const unread = this.#text;
    this.#text = "";
    this.#complete = false;
    this.#failed = true;
    this.#failure = reason;
    this.wake();
    return unread;
  }

  /** Wakes the reader: once per chunk, not once per piece. */
  wake(): void {
    if (this.#text === "" && !this.isOver) return;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /**
   * The next event, or undefined if there is none yet. After the text is read, throws if the reply has
   * failed.
   */
  take(): UpstreamEvent | undefined {
    if (this.#text !== "") {
      const content = this.#text;
      this.#text = "";
      return { kind: "delta", content };
    }
    if (this.#failed) throw this.#failure;
    if (!this.#complete) return undefined;
    return { kind: "done", finishReason: this.#finishReason ?? "stop", usage: this.#usage };
  }

  change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** Does not split a surrogate pair. */
function cut(piece: string, length: number): string {
  const last = piece.charCodeAt(length - 1);
  return piece.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
