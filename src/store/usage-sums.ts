import { laneOfId } from "../domain/lane.ts";
import type { Page } from "../domain/page.ts";
import type { Quarter } from "../domain/quarter.ts";
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

/** What the usage is added up by, besides the periods. */
export type Grouping = {
  readonly account: boolean;
  readonly key: boolean;
  readonly model: boolean;
  readonly user: boolean;
};

export type UsageQuery = {
  /** The first quarters of the periods, in order. */
  readonly starts: readonly Quarter[];
  /** The end of the last period, exclusive. */
  readonly end: Quarter;
  readonly by: Grouping;
};

export type UsagePage = { rows: UsageSum[]; throughSeq: bigint; nextPageToken: string };

/** The query would read more than one page may. */
export class TooMuchUsage extends Error {}

/** A statement reads `rows` sums, in about 50 ms. */
const PIECES = { rows: 50_000n, max: 100 };

/** A page of the usage of an account. */
export async function readUsage(
  database: Cells,
  accountId: string,
  query: UsageQuery,
  page: Page,
  pieces: typeof PIECES = PIECES,
): Promise<UsagePage> {
  const after = readPosition(page);
  const starts = startsFrom(query.starts, after);
  const sums = new GroupSums(page.size + 1);
  const options = { after, rows: pieces.rows, limit: page.size + 1 };
  let throughSeq: bigint | undefined;
  let piecesLeft = pieces.max;
  for await (const piece of usagePieces(database, accountId, { ...query, starts }, options)) {
    if (piecesLeft-- === 0) throw new TooMuchUsage();
    // The number in the first piece: later entries may be missing from sums that were read before them.
    throughSeq ??= piece.throughSeq;
    for (const row of piece.rows) sums.addSum(row);
    // The page is full, and its rows are complete: the next position is in a later period.
    if (piece.next !== undefined && sums.isFullBefore(quarterOf(piece.next), starts)) break;
  }
  return { ...cutSums(sums, page), throughSeq: throughSeq ?? 0n };
}

type PieceOptions = {
  /** Earlier groups are left out. */
  readonly after: Position | undefined;
  /** Sums that a statement reads. */
  readonly rows: bigint;
  /** Groups that a statement returns. */
  readonly limit: number;
};

/** A group or, first, the state of the piece. */
type PieceRow = UsageSum & { through_seq: bigint; next: string | null };

/** Groups of an account, each with a part of its usage: they must be added up. */
export async function* usagePieces(
  database: Cells,
  accountId: string,
  { starts, end, by }: UsageQuery,
  { after, rows: pieceRows, limit }: PieceOptions,
): AsyncGenerator<{ rows: UsageSum[]; throughSeq: bigint; next: string | undefined }> {
  const lane = laneOfId(accountId);
  let next: string | undefined = "";
  while (next !== undefined) {
    const [head, ...rows]: PieceRow[] = await database
      .at(lane)
      .call<PieceRow>(
        "read_usage",
        lane,
        accountId,
        `{${starts.join(",")}}`,
        end,
        by.key,
        by.model,
        by.user,
        textOf(after),
        next,
        pieceRows,
        limit,
      );
    if (!head) return;
    next = head.next ?? undefined;
    const account_id = by.account ? accountId : "";
    yield { rows: rows.map((row) => ({ ...row, account_id })), throughSeq: head.through_seq, next };
  }
}

/** The current quarter, by the clock of the database. */
export async function currentQuarter(cell: FunctionCaller): Promise<Quarter> {
  const [row] = await cell.call<{ quarter: Quarter }>("quarter_of_clock");
  return row?.quarter ?? 0;
}

function quarterOf(position: string): Quarter {
  return (JSON.parse(position) as [Quarter])[0];
}
