import { DomainError } from "../domain/errors.ts";
import { entryIdOf, monthOfId, secondsOfId } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";
import type { Prices } from "../domain/price.ts";
import type { Usage } from "../domain/usage.ts";
import { archivedUntil } from "./archived-until.ts";
import type { Cells } from "./driver/cells.ts";
import { compareBytes, mergeCells } from "./merge-cells.ts";
import { actionJson, type OperatorAction } from "./operator-log.ts";

export type EntryRow = {
  id: string;
  account_id: string;
  seq: bigint;
  kind: "generation" | "credit" | "adjustment";
  amount_micros: bigint;
  balance_after_micros: bigint;
  reason: string;
  request_id: string;
  key_id: string;
  model: string;
  price_version: number;
  input: number;
  cached_input: number;
  cache_write: number;
  output: number;
  reasoning: number;
  images: number;
  image_tokens: number;
  user_id: string;
  trace_id: string;
  created_at: Date;
} & EntryPrices;

/** Null for entries that are not generations. */
type EntryPrices = {
  input_price: bigint | null;
  cached_input_price: bigint | null;
  cache_write_price: bigint | null;
  output_price: bigint | null;
  reasoning_price: bigint | null;
  image_price: bigint | null;
  request_price: bigint | null;
};

/** The prices that a generation was charged at. */
export function pricesOfEntry(row: EntryPrices): Prices {
  return {
    input: row.input_price ?? 0n,
    cachedInput: row.cached_input_price ?? 0n,
    cacheWrite: row.cache_write_price ?? 0n,
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
};

export async function moveBalance(
  database: Cells,
  action: OperatorAction,
  movement: Movement,
): Promise<EntryRow> {
  const lane = laneOfId(movement.accountId);
  const [row] = await database
    .at(lane)
    .call<EntryRow>(
      "move_balance",
      actionJson(action),
      lane,
      movement.accountId,
      movement.entryId,
      monthOfId(movement.entryId),
      movement.kind,
      movement.amountMicros,
      movement.reason,
      movement.idempotencyKey,
    );
  return row as EntryRow;
}

/** Each API has its own prefix for the id of a generation, before the same suffix. */
const GENERATION_ID = /^(gen|resp|msg)_[0-9a-z]{26}$/;

/** The charge of a generation, by its id in any API. */
export async function getGeneration(database: Cells, accountId: string, id: string): Promise<EntryRow> {
  const entryId = entryIdOf(id);
  const lane = laneOfId(accountId);
  const [row] = GENERATION_ID.test(id)
    ? await database.at(lane).call<EntryRow>("get_entry", lane, accountId, entryId, monthOfId(entryId))
    : [];
  if (row?.kind === "generation") return row;
  const until = await archivedUntil(database.at(lane));
  const archived =
    until && GENERATION_ID.test(id) && secondsOfId(id) * 1000 < until.getTime()
      ? ` in the ledger: entries before ${until.toISOString()} are archived`
      : "";
  throw new DomainError("not_found", { message: `There is no charged generation "${id}"${archived}.` });
}

/** A page of the entries of all accounts, newest first. */
export async function listRecentEntries(database: Cells, page: Page) {
  if (!/^(led_[0-9a-z]{26})?$/.test(page.after)) throw badToken();
  const rows = await mergeCells<EntryRow>(database, page.size + 1, {
    read: (cell, last, limit) => {
      const before = last?.id ?? page.after;
      return cell.call("list_recent_entries", before, before === "" ? null : monthOfId(before), limit);
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
  const rows = await database.at(lane).call<EntryRow>("list_entries", lane, accountId, before, limit);
  return cutPage(rows, page, (row) => row.seq.toString());
}
