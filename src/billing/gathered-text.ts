/** Maximum number of pieces that are kept before they are joined. */
const PIECES_MAX = 16;

/**
 * Collects a text that arrives in many small pieces. A string per piece would take many times the memory of
 * its characters.
 */
export class GatheredText {
  #whole = "";
  readonly #pieces: string[] = [];

  get isEmpty(): boolean {
    return this.#whole === "" && this.#pieces.length === 0;
  }

  add(piece: string): void {
    if (this.#pieces.push(piece) === PIECES_MAX) this.#fold();
  }

  toString(): string {
    this.#fold();
    return this.#whole;
  }

  /** Array.join copies the pieces; the sum of two strings would keep references to both. */
  #fold(): void {
    this.#whole += this.#pieces.join("");
    this.#pieces.length = 0;
  }
}
