import { encodeToken, joinPosition, type Page, splitPosition } from "../domain/page.ts";
import type { Quarter } from "../domain/quarter.ts";

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
] as const satisfies (keyof UsageSum)[];

/** Start, account, key, model and user of a group: groups are in this order. */
export type Position = readonly [number, string, string, string, string];

function positionOf({ start, account_id, key_id, model, user_id }: UsageSum): Position {
  return [start, account_id, key_id, model, user_id];
}

export function readPosition(page: Page): Position | undefined {
  return splitPosition(page, 4) as Position | undefined;
}

export function textOf(position: Position | undefined): string {
  return position === undefined ? "" : JSON.stringify(position);
}

/** The periods that a page reads. */
export function startsFrom(starts: readonly Quarter[], after: Position | undefined): readonly Quarter[] {
  if (after === undefined) return starts;
  const first = starts.findLastIndex((start) => start <= after[0]);
  return starts.slice(Math.max(first, 0));
}

export function cutSums(sums: GroupSums, page: Page): { rows: UsageSum[]; nextPageToken: string } {
  const rows = sums.first();
  const last = rows[page.size - 1];
  if (rows.length <= page.size || !last) return { rows, nextPageToken: "" };
  const nextPageToken = encodeToken(page.list, joinPosition(positionOf(last)));
  return { rows: rows.slice(0, page.size), nextPageToken };
}

/** Adds up the sums of several statements. Keeps only the first groups in the order of a list. */
export class GroupSums {
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
