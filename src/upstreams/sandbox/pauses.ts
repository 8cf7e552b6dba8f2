/**
 * Equal pauses between the pieces of one reply. All pauses share one timer and one listener: one of each per
 * piece would use more memory than the rest of the stream.
 */
export class Pauses {
  readonly #ms: number;
  readonly #signal: AbortSignal;
  #timer: NodeJS.Timeout | undefined;
  #end: () => void = () => undefined;
  #fail: (reason: unknown) => void = () => undefined;

  constructor(ms: number, signal: AbortSignal) {
    this.#ms = ms;
    this.#signal = signal;
    signal.addEventListener("abort", this.#abort);
  }

  /** Throws the signal's reason when the signal aborts. */
  next(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#end = resolve;
      this.#fail = reject;
      if (this.#signal.aborted) this.#abort();
      else if (this.#timer) this.#timer.refresh();
      else this.#timer = setTimeout(() => this.#end(), this.#ms);
    });
  }

  /** Ends a pause at once. */
  close(): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#abort);
    this.#end();
  }

  readonly #abort = () => {
    clearTimeout(this.#timer);
    this.#fail(this.#signal.reason);
  };
}
