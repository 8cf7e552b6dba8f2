/** Maximum number of pieces that are kept before they are joined. */
const MAX_PIECES = 16;

/**
 * Collects a text that arrives in many small pieces. A string per piece would take many times the memory of
 * its characters.
 */
export class GatheredText {
  #joined = "";
  readonly #pieces: string[] = [];

  append(piece: string): void {
    if (this.#pieces.push(piece) === MAX_PIECES) this.#join();
  }

  toString(): string {
    this.#join();
    return this.#joined;
  }

  /** Array.join copies the pieces; the sum of two strings would keep references to both. */
  #join(): void {
    this.#joined += this.#pieces.join("");
    this.#pieces.length = 0;
  }
}
