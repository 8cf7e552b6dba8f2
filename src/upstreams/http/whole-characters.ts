/**
 * Joins a character that an upstream splits between two pieces of a text: in JSON, each half of a surrogate pair can be
 * an escape of its own. gRPC cannot send a half, and requests with one are refused, so callers could not send it back.
 */
export class WholeCharacters {
  #half = "";

  /** The piece up to its last whole character. A half without the other one becomes U+FFFD; a last one is dropped. */
  next(piece: string): string {
    const text = this.#half + piece;
    const isSplit = (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
    this.#half = isSplit ? text.slice(-1) : "";
    return (isSplit ? text.slice(0, -1) : text).toWellFormed();
  }
}
