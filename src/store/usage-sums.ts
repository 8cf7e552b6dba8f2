import { laneOfId } from "../domain/lane.ts";
import { badToken, encodeToken, type Page } from "../domain/page.ts";
import type { Quarter } from "../domain/periods.ts";
import type { Database } from "./driver/database.ts";

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

/** The usage of a group. Ids that are not grouped by are empty. */
export type UsageSum = {
  start: Quarter;
  account_id: string;
  key_id: string;
  model: string;
  user_id: string;
  requests: bigint;
  input: bigint;
  cached_input: bigint;
  cache_write: bigint;
  output: bigint;
  reasoning: bigint;
  images: bigint;
  image_tokens: bigint;
  cost_micros: bigint;
};

const COUNTS = [
  "requests",
  "input",
  "cached_input",
  "cache_write",
  "output",
  "reasoning",
  "images",
  "image_tokens",
  "cost_micros",
] as const satisfies (keyof UsageSum)[];

export type UsagePage = { rows: UsageSum[]; throughSeq: bigint; nextPageToken: string };

/** The query needs more reading than one page may cause. */
export class TooMuchUsage extends Error {}

/** A statement reads `rows` sums, in some 50 ms. */
const PIECES = { rows: 50_000n, max: 100 };

/** A page of the usage of an account. */
export async function readUsage(
  database: Database,
  accountId: string,
  query: UsageQuery,
  page: Page,
  pieces: typeof PIECES = PIECES,
): Promise<UsagePage> {
  const after = readPosition(page);
  const starts = startsFrom(query.starts, after);
  const sums = new GroupSums(page.size + 1);
  let throughSeq: bigint | undefined;
  let position: string | undefined = "";
  for (let piece = 0; position !== undefined; piece++) {
    if (piece === pieces.max) throw new TooMuchUsage();
    const [head, ...rows]: PieceRow[] = await database.call<PieceRow>(
      "read_usage",
      laneOfId(accountId),
      accountId,
      `{${starts.join(",")}}`,
      query.end,
      query.by.key,
      query.by.model,
      query.by.user,
      textOf(after),
      position,
      pieces.rows,
      page.size + 1,
    );
    if (!head) break;
    // Of the first piece: entries that are added meanwhile can be in sums that were already read.
    throughSeq ??= head.through_seq;
    for (const row of rows) sums.add({ ...row, account_id: query.by.account ? accountId : "" });
    position = head.next ?? undefined;
    // The page is full, and its rows are complete: the next position is in a later period.
    if (position !== undefined && sums.isFullBefore(quarterOf(position), starts)) break;
  }
  return { ...cutSums(sums, page), throughSeq: throughSeq ?? 0n };
}

/** A group or, first, the state of the piece. */
type PieceRow = UsageSum & { through_seq: bigint; next: string | null };

/** A statement reads the accounts of this many lanes. */
const LANES_PER_STATEMENT = 16;

/** A page of the usage of all accounts. */
export async function readAllUsage(
  database: Database,
  query: UsageQuery,
  page: Page,
): Promise<Omit<UsagePage, "throughSeq">> {
  const after = readPosition(page);
  const starts = startsFrom(query.starts, after);
  const sums = new GroupSums(page.size + 1);
  const lanes = await database.call<{ lanes_in_use: number }>("lanes_in_use");
  for (let at = 0; at < lanes.length; at += LANES_PER_STATEMENT) {
    const some = lanes.slice(at, at + LANES_PER_STATEMENT).map((row) => row.lanes_in_use);
    const rows = await database.call<UsageSum>(
      "read_all_usage",
      `{${some.join(",")}}`,
      `{${starts.join(",")}}`,
      query.end,
      query.by.account,
      query.by.key,
      query.by.model,
      query.by.user,
      textOf(after),
      page.size + 1,
    );
    for (const row of rows) sums.add(row);
  }
  return cutSums(sums, page);
}

/** The current quarter, by the clock of the database. */
export async function currentQuarter(database: Database): Promise<Quarter> {
  const [row] = await database.call<{ quarter: Quarter }>("quarter_of_clock");
  return row?.quarter ?? 0;
}

/** Start, account, key, model and user of a group: groups are in this order. */
type Position = readonly [number, string, string, string, string];

function positionOf({ start, account_id, key_id, model, user_id }: UsageSum): Position {
  return [start, account_id, key_id, model, user_id];
}

function readPosition({ after }: Page): Position | undefined {
  if (after === "") return undefined;
  const [start = "", ...ids] = after.split(SEPARATOR);
  if (!/^\d{1,9}$/.test(start) || ids.length !== 4) throw badToken();
  return [Number(start), ...(ids as [string, string, string, string])];
}

/** PostgreSQL accepts no text with this character. */
const SEPARATOR = "\0";

function textOf(position: Position | undefined): string {
  return position === undefined ? "" : JSON.stringify(position);
}

/** The periods that a page reads. */
function startsFrom(starts: readonly Quarter[], after: Position | undefined): readonly Quarter[] {
  if (after === undefined) return starts;
  const first = starts.findLastIndex((start) => start <= after[0]);
  return starts.slice(Math.max(first, 0));
}

function quarterOf(position: string): Quarter {
  return (JSON.parse(position) as [Quarter])[0];
}

function cutSums(sums: GroupSums, page: Page): { rows: UsageSum[]; nextPageToken: string } {
  const rows = sums.first();
  const last = rows[page.size - 1];
  if (rows.length <= page.size || !last) return { rows, nextPageToken: "" };
  const nextPageToken = encodeToken(page.list, positionOf(last).join(SEPARATOR));
  return { rows: rows.slice(0, page.size), nextPageToken };
}

/** Adds up the sums of several statements. Keeps only the first groups in the order of a list. */
class GroupSums {
  readonly #max: number;
  readonly #groups = new Map<string, UsageSum>();

  constructor(max: number) {
    this.#max = max;
  }

  add(sum: UsageSum): void {
    const key = JSON.stringify(positionOf(sum));
    const known = this.#groups.get(key);
    if (!known) this.#groups.set(key, sum);
    else for (const count of COUNTS) known[count] += sum[count];
    if (this.#groups.size > 4 * this.#max) this.#prune();
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
