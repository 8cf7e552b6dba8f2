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

/** The known name that is most similar to another text. */
export function nearestOf(text: string, names: readonly string[]): string {
  const distances = names.map((name) => editDistance(text, name));
  return names[distances.indexOf(Math.min(...distances))] ?? "";
}

/** Levenshtein distance: the number of characters to insert, delete or replace. */
export function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}

/** `end`, or the position before it if a surrogate pair would be split. */
export function codePointEnd(text: string, end: number): number {
  const isLowSurrogate = end < text.length && (text.charCodeAt(end) & 0xfc00) === 0xdc00;
  return isLowSurrogate ? end - 1 : Math.min(end, text.length);
}
