import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import { compareBytes, mergeCells } from "../database/cells/merge-cells.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import { entryIdOf, isGenerationId, monthOfId, secondsOfId } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { badToken, cutPage, type Page, pageUpTo } from "../domain/page.ts";
import { monthText } from "../domain/periods.ts";
import type { Rates, Usage } from "../domain/price.ts";

export type EntryRow = Omit<sql.PricedLedger, "lane" | "month" | "hash" | "user_id">;

/** Null for entries that are not generations. */
export type EntryPrices = Pick<
  EntryRow,
  | "input_price"
  | "cached_input_price"
  | "cache_write_price"
  | "cache_write_1h_price"
  | "output_price"
  | "reasoning_price"
  | "image_price"
  | "request_price"
>;

/** The prices that a generation was charged at: those of its tier. */
export function ratesOfEntry(row: EntryPrices): Rates {
  return {
    input: row.input_price ?? 0n,
    cachedInput: row.cached_input_price ?? 0n,
    cacheWrite: row.cache_write_price ?? 0n,
    cacheWrite1h: row.cache_write_1h_price ?? 0n,
    output: row.output_price ?? 0n,
    reasoning: row.reasoning_price ?? 0n,
    image: row.image_price ?? 0n,
    request: row.request_price ?? 0n,
  };
}

export function usageOfEntry(row: EntryRow): Usage {
  return {
    input: row.input,
    cachedInput: row.cached_input,
    cacheWrite: row.cache_write,
    cacheWrite1h: row.cache_write_1h,
    output: row.output,
    reasoning: row.reasoning,
    images: row.images,
    imageTokens: row.image_tokens,
  };
}

export type Movement = {
  readonly entryId: string;
  readonly accountId: string;
  readonly kind: "credit" | "adjustment";
  readonly amountMicros: Micros;
  readonly reason: string;
  readonly idempotencyKey: string;
  /** Of a credit: undefined if it does not expire. */
  readonly expiresAt?: Date | undefined;
  /** Of a credit: whether nobody paid for it. */
  readonly isPromotional?: boolean;
};

export async function moveBalance(database: Cells, action: Action, movement: Movement): Promise<EntryRow> {
  const place = { lane: laneOfId(movement.accountId), month: monthOfId(movement.entryId) };
  const [row] = await sql.moveBalance(database, action, { ...movement, ...place });
  return row as EntryRow;
}

/** The charge of a generation, by its id in any API. */
export async function getGeneration(database: Cells, accountId: string, id: string): Promise<EntryRow> {
  const entryId = entryIdOf(id);
  const lane = laneOfId(accountId);
  const [row] = isGenerationId(id)
    ? await sql.getEntry(database.at(lane), { lane, accountId, id: entryId, month: monthOfId(entryId) })
    : [];
  if (row?.kind === "generation") return row;
  const until = await archivedUntil(database.at(lane));
  const archived =
    until && isGenerationId(id) && secondsOfId(id) * 1000 < until.getTime()
      ? ` in the ledger: entries before ${until.toISOString()} are archived`
      : "";
  throw new DomainError("not_found", { message: `There is no charged generation "${id}"${archived}.` });
}

/** The entry of any account with this id, or that of the generation with it. */
export async function findEntries(database: Cells, id: string): Promise<EntryRow[]> {
  const entryId = entryIdOf(id);
  const lane = laneOfId(id);
  return await sql.getEntry(database.at(lane), { lane, accountId: "", id: entryId, month: monthOfId(entryId) });
}

/** A page of the entries of all accounts, newest first. */
export async function listRecentEntries(database: Cells, page: Page) {
  if (!/^(led_[0-9a-z]{26})?$/.test(page.after)) throw badToken();
  const rows = await mergeCells<EntryRow>(database, page.size + 1, {
    read: (cell, last, limit) => {
      const before = last?.id ?? page.after;
      return sql.listRecentEntries(cell, { before, month: before === "" ? null : monthOfId(before), limit });
    },
    compare: (one, other) => compareBytes(other.id, one.id),
    laneOf: (row) => laneOfId(row.account_id),
  });
  return cutPage(rows, page, (row) => row.id);
}

export async function listEntries(database: Cells, accountId: string, page: Page) {
  if (!/^\d{0,18}$/.test(page.after)) throw badToken();
  const before = BigInt(page.after);
  const lane = laneOfId(accountId);
  const limit = page.size + 1;
  const rows = await sql.listEntries(database.at(lane), { lane, accountId, before, limit });
  return cutPage(rows, page, (row) => row.seq.toString());
}

/** Empty texts and undefined times match all entries. */
export type EntryFilter = {
  readonly kind: string;
  readonly keyId: string;
  readonly model: string;
  readonly from: Date | undefined;
  /** Exclusive. */
  readonly to: Date | undefined;
};

/**
 * A statement reads `rows` entries, in a few milliseconds. A page ends after `max` statements, although it may have room for
 * more entries.
 */
const PIECES = { rows: 10_000n, max: 10 };

function isFiltered({ kind, keyId, model, from, to }: EntryFilter): boolean {
  return kind !== "" || keyId !== "" || model !== "" || from !== undefined || to !== undefined;
}

/**
 * A page of the matching entries, newest first. Movements and the entries of a key have indexes. An index for models would
 * make every settlement slower, so other entries are read in pieces, and so are those of a key and a model; a page of
 * these can have fewer entries than its size.
 */
export async function listFilteredEntries(
  database: Cells,
  accountId: string,
  filter: EntryFilter,
  page: Page,
  pieces: typeof PIECES = PIECES,
) {
  if (!isFiltered(filter)) return await listEntries(database, accountId, page);
  if (!/^\d{0,18}$/.test(page.after)) throw badToken();
  const { kind, keyId, model, from, to } = filter;
  const lane = laneOfId(accountId);
  const [range] = await sql.ledgerRange(database.at(lane), { lane, accountId, from, to });
  const first = range?.first_seq ?? 1n;
  let end = range?.end_seq ?? 1n;
  if (page.after !== "" && BigInt(page.after) < end) end = BigInt(page.after);
  const isIndexed = (kind !== "" && kind !== "generation") || (keyId !== "" && model === "");
  const rows: EntryRow[] = [];
  for (let piece = 0; piece < pieces.max && end > first && rows.length <= page.size; piece++) {
    const low: bigint = isIndexed || end - pieces.rows < first ? first : end - pieces.rows;
    const limit = page.size + 1 - rows.length;
    const part = { lane, accountId, kind, keyId, model, first: low, end, limit };
    rows.push(...(await sql.filterEntries(database.at(lane), part)));
    end = low;
  }
  return pageUpTo(rows, page, (row) => row.seq.toString(), end > first ? end.toString() : undefined);
}

/** The end of the last month whose entries were moved to a file; undefined if the ledger is complete. */
export async function archivedUntil(cell: FunctionCaller): Promise<Date | undefined> {
  const rows = await sql.listArchives(cell);
  const last = rows.findLast(({ removed_at }) => removed_at !== null);
  return last && new Date(Date.UTC(1970, last.month + 1));
}

/** Partitions are created months ahead, so a failure can wait for the next hour. */
const CHECKS_PER_ATTEMPT = 3_600;

/** A month, as `2030-01`, whose entries are in the default partition. */
type MonthWithoutPartition = { readonly month: string; readonly entries: number };

/** Creates the partitions of the ledger of a cell for the next months. */
export class LedgerPartitions {
  readonly #cell: FunctionCaller;
  readonly #onChecked: (months: readonly MonthWithoutPartition[]) => void;
  #checks = 0;

  /** @param onChecked called after each check; only the owner of the tables can move the entries, see `move_other_month` */
  constructor(cell: FunctionCaller, onChecked: (months: readonly MonthWithoutPartition[]) => void) {
    this.#cell = cell;
    this.#onChecked = onChecked;
  }

  /** Called every second. */
  async maintain(): Promise<void> {
    if (this.#checks++ % CHECKS_PER_ATTEMPT !== 0) return;
    await sql.createLedgerPartitions(this.#cell);
    const rows = await sql.monthsWithoutPartition(this.#cell);
    this.#onChecked(rows.map(({ month, entries }) => ({ month: monthText(month), entries: Number(entries) })));
  }
}
