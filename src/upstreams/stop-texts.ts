/**
 * Ends a reply before the first of its stop texts, however the reply is cut into pieces. What could be the beginning
 * of a stop text is kept back until it is known not to be one.
 */
export class StopTexts {
  readonly #texts: readonly string[];
  readonly #longest: number;
  #kept = "";
  #stopped = false;

  constructor(texts: readonly string[]) {
    this.#texts = texts.filter((text) => text !== "");
    this.#longest = this.#texts.reduce((longest, { length }) => Math.max(longest, length), 0);
  }

  /** Whether a stop text came; nothing may be added any more. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Takes a piece and returns what may be passed on, which can be nothing. */
  add(piece: string): string {
    if (this.#stopped) return "";
    if (this.#longest === 0) return piece;
    const text = this.#kept + piece;
    const cut = this.#firstStop(text);
    this.#stopped = cut !== undefined;
    const end = cut ?? this.#possibleStart(text);
    this.#kept = this.#stopped ? "" : text.slice(end);
    return text.slice(0, end);
  }

  /** The reply is over: what was kept back was no stop text. */
  end(): string {
    const kept = this.#kept;
    this.#kept = "";
    return kept;
  }

  /** Where the stop text begins that was complete first. Going by that, the size of the pieces makes no difference. */
  #firstStop(text: string): number | undefined {
    let first: { readonly start: number; readonly end: number } | undefined;
    for (const stop of this.#texts) {
      const start = text.indexOf(stop);
      const end = start + stop.length;
      if (start < 0) continue;
      if (!first || end < first.end || (end === first.end && start < first.start)) first = { start, end };
    }
    return first?.start;
  }

  /** Where the longest end of the text begins that a stop text could begin with. */
  #possibleStart(text: string): number {
    for (let start = Math.max(0, text.length - this.#longest + 1); start < text.length; start++) {
      const end = text.slice(start);
      if (this.#texts.some((stop) => stop.startsWith(end))) return start;
    }
    return text.length;
  }
}
