/**
 * A statement reads `rows` names in some milliseconds, so that no other statement waits long for its cell. A search reads the
 * names of a million accounts or keys of each cell at most.
 */
export const PIECES = { rows: 10_000, max: 100 };

/**
 * The rows of a cell whose name contains a text after its start. `read` returns them among the next names after a row, and the last
 * row that it read even if it does not match.
 */
export async function readNameParts<Row extends Start & { is_match: boolean }, Start extends object>(
  start: Start,
  limit: number,
  pieces: typeof PIECES,
  read: (after: Start, rows: number, limit: number) => Promise<Row[]>,
): Promise<Row[]> {
  const found: Row[] = [];
  let after = start;
  for (let piece = 0; piece < pieces.max && found.length < limit; piece++) {
    const rows = await read(after, pieces.rows, limit - found.length);
    const last = rows.at(-1);
    if (!last) break;
    found.push(...rows.filter((row) => row.is_match));
    after = last;
  }
  return found;
}
