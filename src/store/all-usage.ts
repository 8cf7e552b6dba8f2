import type { Page } from "../domain/page.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";
import {
  cutSums,
  GroupSums,
  type Position,
  readPosition,
  startsFrom,
  textOf,
  type UsageSum,
} from "./group-sums.ts";
import { namedCell } from "./named-cell.ts";
import { TooMuchUsage, type UsagePage, type UsageQuery, usagePieces } from "./usage-sums.ts";

/** A statement reads at most `rows` sums of `accounts` accounts, in about 100 ms; a page needs at most `max` statements. */
const PIECES = { rows: 50_000n, accounts: 5_000, max: 300 };

/** A group or, first, the state of the piece. */
type PieceRow = UsageSum & { account_id: string | null; large_account_id: string };

/**
 * A page of the usage of all accounts. A page that is grouped by account starts at the last account of the previous page and
 * ends when it is full. It reads one period first, then later periods in steps that double.
 */
export async function readAllUsage(
  database: Cells,
  query: UsageQuery,
  page: Page,
  pieces: typeof PIECES = PIECES,
): Promise<Omit<UsagePage, "throughSeq">> {
  const { by } = query;
  const after = readPosition(page);
  const starts = startsFrom(query.starts, after);
  const sums = new GroupSums(page.size + 1);
  let piecesLeft = pieces.max;
  let step = by.account || by.key || by.user ? 1 : starts.length;
  for (let first = 0; first < starts.length && !sums.isFull; first += step, step *= 2) {
    const part = { by, starts: starts.slice(first, first + step), end: starts[first + step] ?? query.end };
    const isInOrder = by.account && part.starts.length === 1;
    const fromId = isInOrder && first === 0 ? after?.[1] : undefined;
    const options = { after, limit: page.size + 1, fromId: fromId ?? "", ...pieces };
    for (const i of database.all.keys()) {
      const cell = namedCell(database, i);
      // The first groups of all cells are among the first groups of each.
      const ofCell = new GroupSums(page.size + 1);
      for await (const rows of allUsagePieces(database, cell, part, options)) {
        if (piecesLeft-- === 0) throw new TooMuchUsage();
        for (const row of rows) ofCell.addSum(row);
        if (isInOrder && ofCell.isFull) break;
      }
      for (const row of ofCell.first()) sums.addSum(row);
    }
  }
  return cutSums(sums, page);
}

type PieceOptions = {
  readonly after: Position | undefined;
  readonly limit: number;
  readonly fromId: string;
  readonly rows: bigint;
  readonly accounts: number;
};

/** Groups of accounts of one cell in the order of their ids, each with a part of its usage. */
async function* allUsagePieces(
  database: Cells,
  cell: FunctionCaller,
  query: UsageQuery,
  options: PieceOptions,
): AsyncGenerator<UsageSum[]> {
  const { starts, end, by } = query;
  const { after, limit } = options;
  let accountId: string | null = options.fromId;
  while (accountId !== null) {
    const [head, ...rows]: PieceRow[] = await cell.call<PieceRow>(
      "read_all_usage",
      `{${starts.join(",")}}`,
      end,
      by.account,
      by.key,
      by.model,
      by.user,
      textOf(after),
      accountId,
      options.rows,
      options.accounts,
      limit,
    );
    if (!head) return;
    yield rows;
    const largeId = head.large_account_id;
    if (largeId !== "") {
      const isLater = by.account && largeId !== after?.[1];
      const largeOptions = { after: isLater ? undefined : after, rows: options.rows, limit };
      for await (const piece of usagePieces(database, largeId, query, largeOptions)) yield piece.rows;
    }
    accountId = head.account_id;
  }
}
