import * as sql from "../../gen/sql/calls.ts";
import { namedCell } from "../database/cells/named-cell.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { laneOfId } from "../domain/lane.ts";
import { encodeToken, joinPosition, type Page, splitPosition } from "../domain/page.ts";
import { QUARTER_MS, type Quarter } from "../domain/periods.ts";

/** What the usage is added up by, besides the periods. */
export type Grouping = {
  readonly account: boolean;
  readonly key: boolean;
  readonly model: boolean;
  readonly user: boolean;
  /** Only for operators. */
  readonly upstream: boolean;
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
    if (piece.next !== undefined && sums.isFullBefore((JSON.parse(piece.next) as { quarter: Quarter }).quarter, starts)) break;
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

/** Groups of an account, each with a part of its usage: they must be added up. */
async function* usagePieces(
  database: Cells,
  accountId: string,
  { starts, end, by }: UsageQuery,
  { after, rows: pieceRows, limit }: PieceOptions,
): AsyncGenerator<{ rows: UsageSum[]; throughSeq: bigint; next: string | undefined }> {
  const lane = laneOfId(accountId);
  let next: string | undefined = "";
  while (next !== undefined) {
    // The first row is the state of the piece.
    const [head, ...rows]: sql.UsageGroup[] = await sql.readUsage(database.at(lane), {
      lane,
      accountId,
      starts: `{${starts.join(",")}}`,
      end,
      ...groupingOf(by),
      after: textOf(after),
      position: next,
      rows: pieceRows,
      limit,
    });
    if (!head) return;
    next = head.next ?? undefined;
    const account_id = by.account ? accountId : "";
    yield { rows: rows.map((row) => ({ ...row, account_id }) as UsageSum), throughSeq: head.through_seq ?? 0n, next };
  }
}

function groupingOf({ key, model, user, upstream }: Grouping) {
  return { byKey: key, byModel: model, byUser: user, byUpstream: upstream };
}

/** The current quarter, by the clock of the database. */
export async function currentQuarter(cell: FunctionCaller): Promise<Quarter> {
  return Math.floor((await currentTimeMs(cell)) / QUARTER_MS);
}

/** By the clock of the database, in whole seconds. */
export async function currentTimeMs(cell: FunctionCaller): Promise<number> {
  const [row] = await sql.secondsOfClock(cell);
  return Number(row?.seconds) * 1_000;
}

/** A statement reads at most `rows` sums of `accounts` accounts, in about 100 ms; a page needs at most `max` statements. */
const ALL_PIECES = { rows: 50_000n, accounts: 5_000, max: 300 };

/**
 * A page of the usage of all accounts. A page that is grouped by account starts at the last account of the previous page and
 * ends when it is full. It reads one period first, then later periods in steps that double.
 */
export async function readAllUsage(
  database: Cells,
  query: UsageQuery,
  page: Page,
  pieces: typeof ALL_PIECES = ALL_PIECES,
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
      for await (const { rows, endsAccount } of allUsagePieces(database, cell, part, options)) {
        if (piecesLeft-- === 0) throw new TooMuchUsage();
        for (const row of rows) ofCell.addSum(row);
        // Later pieces of the same account add to its groups, or have groups before them.
        if (isInOrder && endsAccount && ofCell.isFull) break;
      }
      for (const row of ofCell.first()) sums.addSum(row);
    }
  }
  return cutSums(sums, page);
}

type AllPieceOptions = {
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
  options: AllPieceOptions,
): AsyncGenerator<{ rows: UsageSum[]; endsAccount: boolean }> {
  const { starts, end, by } = query;
  const { after, limit } = options;
  let accountId: string | null = options.fromId;
  while (accountId !== null) {
    // The first row is the state of the piece.
    const [head, ...rows]: sql.UsageGroup[] = await sql.readAllUsage(cell, {
      starts: `{${starts.join(",")}}`,
      end,
      byAccount: by.account,
      ...groupingOf(by),
      after: textOf(after),
      accountId,
      rows: options.rows,
      accounts: options.accounts,
      limit,
    });
    if (!head) return;
    yield { rows: rows as UsageSum[], endsAccount: true };
    const largeId = head.large_account_id;
    if (largeId) {
      const isLater = by.account && largeId !== after?.[1];
      const largeOptions = { after: isLater ? undefined : after, rows: options.rows, limit };
      for await (const piece of usagePieces(database, largeId, query, largeOptions))
        yield { rows: piece.rows, endsAccount: piece.next === undefined };
    }
    accountId = head.next;
  }
}

/** The usage of a group. Ids that are not grouped by are empty. */
export type UsageSum = Omit<sql.UsageGroup, "start" | "through_seq" | "large_account_id" | "next"> & { start: Quarter };

/** The fields of a sum that are added up. */
export const USAGE_COUNTS = [
  "requests",
  "input",
  "cached_input",
  "cache_write",
  "output",
  "reasoning",
  "images",
  "image_tokens",
  "cost_micros",
  "upstream_cost_micros",
  "uncosted_micros",
] as const satisfies (keyof UsageSum)[];

/** Start, account, key, model, user and upstream of a group: groups are in this order. */
type Position = readonly [number, string, string, string, string, string];

function positionOf({ start, account_id, key_id, model, user_name, upstream }: UsageSum): Position {
  return [start, account_id, key_id, model, user_name, upstream];
}

function readPosition(page: Page): Position | undefined {
  return splitPosition(page, 5) as Position | undefined;
}

function textOf(position: Position | undefined): string {
  return position === undefined ? "" : JSON.stringify(position);
}

/** The periods that a page reads. */
function startsFrom(starts: readonly Quarter[], after: Position | undefined): readonly Quarter[] {
  if (after === undefined) return starts;
  const first = starts.findLastIndex((start) => start <= after[0]);
  return starts.slice(Math.max(first, 0));
}

function cutSums(sums: GroupSums, page: Page): { rows: UsageSum[]; nextPageToken: string } {
  const rows = sums.first();
  const last = rows[page.size - 1];
  if (rows.length <= page.size || !last) return { rows, nextPageToken: "" };
  const nextPageToken = encodeToken(page.list, joinPosition(positionOf(last)));
  return { rows: rows.slice(0, page.size), nextPageToken };
}

/** Adds up the sums of several statements. Keeps only the first groups in the order of a list. */
class GroupSums {
  readonly #max: number;
  readonly #groups = new Map<string, UsageSum>();

  constructor(max: number) {
    this.#max = max;
  }

  addSum(sum: UsageSum): void {
    const key = JSON.stringify(positionOf(sum));
    const known = this.#groups.get(key);
    if (!known) this.#groups.set(key, sum);
    else for (const count of USAGE_COUNTS) known[count] += sum[count];
    if (this.#groups.size > 4 * this.#max) this.#prune();
  }

  /** Whether there are as many groups as the page needs. */
  get isFull(): boolean {
    return this.#groups.size >= this.#max;
  }

  first(): UsageSum[] {
    return [...this.#groups.values()].sort(compareGroups).slice(0, this.#max);
  }

  /** Whether no sum of this quarter or a later one can change the first groups. */
  isFullBefore(quarter: Quarter, starts: readonly Quarter[]): boolean {
    const period = starts.findLast((start) => start <= quarter) ?? 0;
    const groups = this.first();
    const last = groups[this.#max - 1];
    return last !== undefined && last.start < period;
  }

  /** A group beyond the maximum can never be among the first: later sums only add groups. */
  #prune(): void {
    const kept = this.first();
    this.#groups.clear();
    for (const sum of kept) this.#groups.set(JSON.stringify(positionOf(sum)), sum);
  }
}

function compareGroups(a: UsageSum, b: UsageSum): number {
  const [one, other] = [positionOf(a), positionOf(b)];
  if (one[0] !== other[0]) return one[0] - other[0];
  for (let i = 1; i < one.length; i++) {
    const order = Buffer.compare(Buffer.from(String(one[i])), Buffer.from(String(other[i])));
    if (order !== 0) return order;
  }
  return 0;
}
