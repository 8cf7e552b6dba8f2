type Group = { readonly endsAtMs: number; readonly timer: NodeJS.Timeout; readonly waiting: Set<() => void> };

/** By the millisecond of performance.now() in which they end. */
const groups = new Map<number, Group>();

/**
 * Equal pauses between the pieces of one reply. Pauses of all replies that end in the same millisecond share one
 * timer: Node enters and leaves its queue of promises for each timer, which takes as long as the rest of the sandbox.
 * All pauses of a reply share one listener, because one per piece would use more memory than the rest of the stream.
 */
export class Pauses {
  readonly #ms: number;
  readonly #signal: AbortSignal;
  #group: Group | undefined;
  #resolve: () => void = () => undefined;
  #fail: (reason: unknown) => void = () => undefined;

  constructor(ms: number, signal: AbortSignal) {
    this.#ms = ms;
    this.#signal = signal;
    signal.addEventListener("abort", this.#abort);
  }

  /** Throws the signal's reason when the signal aborts. */
  next(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#fail = reject;
      if (this.#signal.aborted) {
        this.#abort();
        return;
      }
      this.#group = groupAfter(this.#ms);
      this.#group.waiting.add(this.#end);
    });
  }

  /** Ends a pause at once. */
  close(): void {
    this.#leaveGroup();
    this.#signal.removeEventListener("abort", this.#abort);
    this.#resolve();
  }

  readonly #end = () => this.#resolve();

  readonly #abort = () => {
    this.#leaveGroup();
    this.#fail(this.#signal.reason);
  };

  /** The last one stops the timer: pauses can be long. */
  #leaveGroup(): void {
    const group = this.#group;
    if (!group?.waiting.delete(this.#end) || group.waiting.size > 0) return;
    clearTimeout(group.timer);
    groups.delete(group.endsAtMs);
  }
}

function groupAfter(ms: number): Group {
  const endsAtMs = Math.ceil(performance.now()) + ms;
  const known = groups.get(endsAtMs);
  if (known) return known;
  const waiting = new Set<() => void>();
  const timer = setTimeout(() => {
    groups.delete(endsAtMs);
    for (const end of waiting) end();
    waiting.clear();
  }, ms);
  const group = { endsAtMs, timer, waiting };
  groups.set(endsAtMs, group);
  return group;
}
