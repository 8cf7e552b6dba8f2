import type { FinishReason, TokenUsage } from "../../domain/prompt.ts";
import type { UpstreamFailure } from "../runner/failure.ts";
import type { UpstreamEvent } from "../upstream.ts";
import { charsMax, isBeyond } from "./response-limits.ts";

/**
 * The part of a reply that was received and not read yet. Pieces are joined while they wait: a reader that is slower than
 * the upstream gets fewer and longer ones, so there is one text and never a queue.
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

  /** Nothing that still comes counts. */
  get isOver(): boolean {
    return this.#complete || this.#failed;
  }

  get isComplete(): boolean {
    return this.#complete;
  }

  /** Complete because the upstream went on where it should have stopped. */
  get wasCut(): boolean {
    return this.#cut;
  }

  get unreadChars(): number {
    return this.#text.length;
  }

  /** A reply that goes on beyond max_tokens ends here, as it would have where they are kept. */
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

  /** The upstream said that this was all. */
  complete(): void {
    if (this.isOver) return;
    this.#finishReason ??= "stop";
    this.#complete = true;
  }

  /** The response ended, well or not. Once a finish reason has come the reply is whole, however it ends. */
  end(failure: UpstreamFailure): void {
    if (this.#finishReason === undefined) this.fail(failure);
    else this.complete();
  }

  fail(failure: unknown): void {
    if (this.isOver) return;
    this.#failed = true;
    this.#failure = failure;
  }

  /** The reader has gone. Returns the text that it did not read. */
  abort(reason: unknown): string {
    const unread = this.#text;
    this.#text = "";
    this.#complete = false;
    this.#failed = true;
    this.#failure = reason;
    this.wake();
    return unread;
  }

  /** Tells the reader to look: once per chunk, not once per piece. */
  wake(): void {
    if (this.#text === "" && !this.isOver) return;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** The next event, or undefined while there is none; throws once the text is read and the reply has failed. */
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

/** Never half of a surrogate pair. */
function cut(piece: string, length: number): string {
  const last = piece.charCodeAt(length - 1);
  return piece.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
