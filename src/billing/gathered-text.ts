/** So many pieces are kept as they came. */
const PIECES_MAX = 16;

/** A text that comes in very many pieces. Each of them alone would take many times the memory of its characters. */
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

  /** Unlike the sum of two strings, what is joined no longer refers to its parts. */
  #fold(): void {
    this.#whole += this.#pieces.join("");
    this.#pieces.length = 0;
  }
}
