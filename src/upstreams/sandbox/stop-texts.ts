/**
 * Ends a reply before its first stop text, even if the stop text spans pieces. Text that may be the start of
 * a stop text is held back until the next pieces decide.
 */
export class StopTexts {
  readonly #texts: readonly string[];
  readonly #longest: number;
  #kept = "";
  #found: string | undefined;

  constructor(texts: readonly string[]) {
    this.#texts = texts.filter((text) => text !== "");
    this.#longest = this.#texts.reduce((longest, { length }) => Math.max(longest, length), 0);
  }

  /** The stop text that was found; later pieces are ignored. */
  get found(): string | undefined {
    return this.#found;
  }

  /** Takes a piece and returns the text to pass on, which may be empty. */
  filter(piece: string): string {
    if (this.#found !== undefined) return "";
    if (this.#longest === 0) return piece;
    const text = this.#kept + piece;
    const first = this.#firstStop(text);
    this.#found = first?.stop;
    const end = first?.start ?? this.#possibleStart(text);
    this.#kept = first ? "" : text.slice(end);
    return text.slice(0, end);
  }

  /** Called at the end of the reply: returns the text that was held back. */
  flush(): string {
    const kept = this.#kept;
    this.#kept = "";
    return kept;
  }

  /**
   * The stop text that is complete first. This rule makes the result independent of the piece sizes.
   */
  #firstStop(text: string): { readonly stop: string; readonly start: number } | undefined {
    let first: { readonly stop: string; readonly start: number; readonly end: number } | undefined;
    for (const stop of this.#texts) {
      const start = text.indexOf(stop);
      const end = start + stop.length;
      if (start < 0) continue;
      if (!first || end < first.end || (end === first.end && start < first.start))
        first = { stop, start, end };
    }
    return first;
  }

  /** Start of the longest suffix that is a prefix of a stop text; the text's length if there is none. */
  #possibleStart(text: string): number {
    for (let start = Math.max(0, text.length - this.#longest + 1); start < text.length; start++) {
      const end = text.slice(start);
      if (this.#texts.some((stop) => stop.startsWith(end))) return start;
    }
    return text.length;
  }
}
