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
