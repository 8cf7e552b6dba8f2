import type { Lane } from "../../domain/lane.ts";
import type { Cells, FunctionCaller } from "../driver/cells.ts";
import { namedCell } from "./named-cell.ts";

/** A list of one cell, and the order that its rows have in every cell. */
type SortedList<Row> = {
  /** The rows after a position, at most `limit`; undefined means from the start of the page. */
  readonly read: (cell: FunctionCaller, after: Row | undefined, limit: number) => Promise<Row[]>;
  readonly compare: (one: Row, other: Row) => number;
  readonly laneOf: (row: Row) => Lane;
};

/** The rows of a cell that were read and not used yet. */
type Source<Row> = {
  readonly cell: number;
  rows: Row[];
  /** The index of the next row to use. */
  next: number;
  /** The last row that was read. */
  last: Row | undefined;
  isComplete: boolean;
};

/**
 * The first rows of a list of all cells, in its order. Further rows of a cell are read only when the earlier ones are used
 * up, which happens when a cell still has rows of lanes that another cell owns.
 */
export async function mergeCells<Row>(database: Cells, limit: number, list: SortedList<Row>): Promise<Row[]> {
  const { all } = database;
  if (all.length === 1) return await list.read(database.home, undefined, limit);
  const sources = all.map((_, cell): Source<Row> => ({ cell, rows: [], next: 0, last: undefined, isComplete: false }));
  const merged: Row[] = [];
  while (merged.length < limit) {
    await Promise.all(sources.map((source) => refill(database, source, limit, list)));
    const first = firstOf(sources, list.compare);
    if (!first) break;
    merged.push(first.rows[first.next++] as Row);
  }
  return merged;
}

async function refill<Row>(
  database: Cells,
  source: Source<Row>,
  limit: number,
  { read, laneOf }: SortedList<Row>,
): Promise<void> {
  const cell = namedCell(database, source.cell);
  while (source.next === source.rows.length && !source.isComplete) {
    const rows: Row[] = await read(cell, source.last, limit);
    source.isComplete = rows.length < limit;
    source.last = rows.at(-1);
    source.rows = rows.filter((row) => database.owns(source.cell, laneOf(row)));
    source.next = 0;
  }
}

function firstOf<Row>(sources: readonly Source<Row>[], compare: SortedList<Row>["compare"]): Source<Row> | undefined {
  let first: Source<Row> | undefined;
  for (const source of sources) {
    const row = source.rows[source.next];
    const best = first?.rows[first.next];
    if (row !== undefined && (best === undefined || compare(row, best) < 0)) first = source;
  }
  return first;
}

/** The order of the bytes of two texts, as PostgreSQL sorts with the collation "C". */
export function compareBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/**
 * A statement reads `rows` names in some milliseconds, so that no other statement waits long for its cell. A search reads the
 * names of a million accounts or keys of each cell at most.
 */
export const NAME_PIECES = { rows: 10_000, max: 100 };

/**
 * The rows of a cell whose name contains a text after its start. `read` returns them among the next names after a row, and the last
 * row that it read even if it does not match.
 */
export async function readNameParts<Row extends Start & { is_match: boolean }, Start extends object>(
  start: Start,
  limit: number,
  pieces: typeof NAME_PIECES,
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
