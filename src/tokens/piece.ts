/** Tokenizing takes quadratic time in the length of an unbroken run, so this limits the run. */
export const PIECE_CHARACTERS = 256;

const SPACE = 0x20;

/**
 * End of the piece that starts at `start`. It is before a space if possible: no token spans the end of a word
 * and the space after it, so the pieces have as many tokens in total as the whole text.
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
