/** The number of Unicode code points: a surrogate pair is one character. */
export function charactersOf(text: string): number {
  let pairs = 0;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xd800) pairs++;
  return text.length - pairs;
}

/** The number of UTF-16 units, at most twice the number of characters. */
export function unitsOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

/** Whether the texts have more characters together. Texts are read only if their length does not decide. */
export function hasMoreCharacters(texts: readonly string[], max: number): boolean {
  const units = unitsOf(texts);
  if (units <= max || units > 2 * max) return units > max;
  return texts.reduce((sum, text) => sum + charactersOf(text), 0) > max;
}
