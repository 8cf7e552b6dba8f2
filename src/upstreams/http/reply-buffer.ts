import type { FinishReason, TokenUsage } from "../../domain/prompt.ts";
import type { UpstreamEvent } from "../upstream.ts";
import { exceedsMaxTokens, maxReplyChars } from "./response-limits.ts";

/** A reply is open until exactly one of the other states; only an abort changes those. */
type State =
  | { readonly kind: "open" }
  /** The upstream signalled the end of the reply, or exceeded max_tokens ("cut"). */
  | { readonly kind: "complete" | "cut" }
  | { readonly kind: "failed"; readonly error: unknown };

const OPEN: State = { kind: "open" };
const COMPLETE: State = { kind: "complete" };
const CUT: State = { kind: "cut" };

/**
 * The received, unread part of a reply. Unread pieces are joined: a slow reader gets fewer, longer pieces, so
 * there is one string and no queue.
 */
export class ReplyBuffer {
  readonly #maxTokens: number;
  #state: State = OPEN;
  #unread = "";
  #pieces = 0;
  #chars = 0;
  #finishReason: FinishReason | undefined;
  #usage: TokenUsage | undefined;
  #wakeReader: (() => void) | undefined;

  constructor(maxTokens: number) {
    this.#maxTokens = maxTokens;
  }

  get state(): State["kind"] {
    return this.#state.kind;
  }

  /** Ends a reply that exceeds max_tokens, as a server that enforces the limit does. */
  append(piece: string): void {
    if (piece === "" || this.#state !== OPEN) return;
    const room = maxReplyChars(this.#maxTokens) - this.#chars;
    this.#unread += piece.length > room ? truncate(piece, room) : piece;
    this.#pieces++;
    this.#chars += piece.length;
    if (piece.length > room || exceedsMaxTokens(this.#maxTokens, this.#pieces, this.#chars))
      this.#state = CUT;
  }

  setFinishReason(reason: FinishReason): void {
    if (this.#state === OPEN) this.#finishReason = reason;
  }

  setUsage(usage: TokenUsage | undefined): void {
    if (this.#state === OPEN && usage) this.#usage = usage;
  }

  /** Called when the upstream signals the end of the reply. */
  complete(): void {
    if (this.#state === OPEN) this.#state = COMPLETE;
  }

  /** Called when nothing more can be read. After a finish reason, the reply counts as complete. */
  fail(error: unknown): void {
    if (this.#state !== OPEN) return;
    this.#state = this.#finishReason === undefined ? { kind: "failed", error } : COMPLETE;
  }

  /** Called when the call is aborted, in any state. Returns the unread text. */
  abort(reason: unknown): string {
    const unread = this.#unread;
    this.#unread = "";
    this.#state = { kind: "failed", error: reason };
    this.wakeReader();
    return unread;
  }

  /** Called once per chunk, not once per piece. */
  wakeReader(): void {
    if (this.#unread === "" && this.#state === OPEN) return;
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }

  /** The next event, or undefined if there is none yet. Throws the failure after the text has been read. */
  nextEvent(): UpstreamEvent | undefined {
    if (this.#unread !== "") {
      const content = this.#unread;
      this.#unread = "";
      return { kind: "delta", content };
    }
    const state = this.#state;
    switch (state.kind) {
      case "open":
        return undefined;
      case "complete":
        return { kind: "done", finishReason: this.#finishReason ?? "stop", usage: this.#usage };
      case "cut":
        // The reported usage, if any, may include tokens beyond the limit.
        return { kind: "done", finishReason: "length", usage: undefined };
      case "failed":
        throw state.error;
    }
  }

  /** Resolves when there may be a next event. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeReader = resolve;
    });
  }
}

/** Does not split a surrogate pair. */
function truncate(piece: string, length: number): string {
  const last = piece.charCodeAt(length - 1);
  return piece.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
