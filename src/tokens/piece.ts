/** A tokenizer takes a time that grows with the square of an unbroken run; so no run is longer than this. */
export const PIECE_CHARACTERS = 256;

const SPACE = 0x20;

/**
 * Where the piece that begins at `start` ends. Before a space where there is one: no token reaches across the border
 * of a word and the space after it, so the pieces have together as many tokens as the whole.
 */
export function pieceEnd(text: string, start: number): number {
  const end = start + PIECE_CHARACTERS;
  if (end >= text.length) return text.length;
  for (let at = end; at > start; at--) {
    if (text.charCodeAt(at) === SPACE && !isWhitespace(text.charCodeAt(at - 1))) return at;
  }
  return isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end;
}

function isWhitespace(unit: number): boolean {
  return unit <= SPACE || (unit >= 0x7f && /\s/.test(String.fromCharCode(unit)));
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
