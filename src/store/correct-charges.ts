import { hash } from "node:crypto";
import { entryIdOf, monthOfId } from "../domain/ids.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { QUARTER_MS } from "../domain/periods.ts";
import type { Prices } from "../domain/price.ts";
import { type Action, change } from "./action.ts";
import type { Cells } from "./driver/cells.ts";
import type { EntryRow } from "./ledger.ts";
import { allLanesInUse } from "./named-cell.ts";
import { arrayOfRates } from "./prices.ts";

/** The charges of a model in a range of time, and other prices for them. */
export type Rerating = {
  readonly model: string;
  readonly from: Date;
  /** Exclusive. */
  readonly to: Date;
  readonly prices: Prices;
  readonly reason: string;
  /** Whether the differences are corrected. */
  readonly apply: boolean;
};

export type RerateSum = {
  adjusted: bigint;
  credit_micros: bigint;
  debit_micros: bigint;
  refused: bigint;
  refused_micros: bigint;
  skipped: bigint;
};

type Account = { account_id: string; account_name: string };
type Piece = RerateSum & { next_seq: bigint | null };

/** What a statement reads: calls of the lane wait while the entries are corrected. */
const PIECES = { entries: 100, accounts: 100 };

/**
 * The result of each account with charges that differ, account by account and piece by piece.
 *
 * @param check throws before the next piece if the re-rating has to stop
 */
export async function* rerate(
  database: Cells,
  action: Action,
  rerating: Rerating,
  check: () => Promise<void>,
  pieces: typeof PIECES = PIECES,
): AsyncGenerator<RerateSum & Account, void> {
  for (const lane of await allLanesInUse(database)) {
    for await (const account of accountsWithModel(database, lane, rerating, check, pieces.accounts)) {
      const sum = await rerateAccount(database, action, rerating, account.account_id, check, pieces.entries);
      if (sum.adjusted + sum.refused + sum.skipped > 0n) yield { ...account, ...sum };
    }
  }
}

async function* accountsWithModel(
  database: Cells,
  lane: Lane,
  { model, from, to }: Rerating,
  check: () => Promise<void>,
  limit: number,
): AsyncGenerator<Account, void> {
  const [first, end] = [Math.floor(from.getTime() / QUARTER_MS), Math.ceil(to.getTime() / QUARTER_MS)];
  let after: string | undefined = "";
  while (after !== undefined) {
    await check();
    const page: (Account & { has_used: boolean })[] = await database
      .at(lane)
      .call<Account & { has_used: boolean }>("accounts_with_model", lane, model, first, end, after, limit);
    for (const { has_used, ...account } of page) if (has_used) yield account;
    after = page[limit - 1]?.account_id;
  }
}

async function rerateAccount(
  database: Cells,
  action: Action,
  rerating: Rerating,
  accountId: string,
  check: () => Promise<void>,
  limit: number,
): Promise<RerateSum> {
  const { model, from, to, prices, reason, apply } = rerating;
  const lane = laneOfId(accountId);
  const cell = database.at(lane);
  const [range] = await cell.call<{ first_seq: bigint; end_seq: bigint }>("ledger_range", lane, accountId, from, to);
  const sum = {
    adjusted: 0n,
    credit_micros: 0n,
    debit_micros: 0n,
    refused: 0n,
    refused_micros: 0n,
    skipped: 0n,
  };
  const ofAccount = { ...action, target: accountId };
  const rest = [model, arrayOfRates(prices), causeOf(rerating), reason, apply, limit] as const;
  let next = range?.first_seq ?? null;
  while (range && next !== null) {
    await check();
    const [piece]: Piece[] = await change<Piece>(
      database,
      lane,
      ofAccount,
      "rerate_entries",
      lane,
      accountId,
      next,
      range.end_seq,
      ...rest,
    );
    for (const name of Object.keys(sum) as (keyof RerateSum)[]) sum[name] += piece?.[name] ?? 0n;
    next = piece?.next_seq ?? null;
  }
  return sum;
}

/** Identifies the re-rating, so that a repeated one continues it. */
function causeOf({ model, from, to, prices, reason }: Rerating): string {
  const fields = [model, from.toISOString(), to.toISOString(), arrayOfRates(prices), reason];
  return `rer_${hash("sha256", JSON.stringify(fields), "hex").slice(0, 32)}`;
}

export type Refund = {
  readonly accountId: string;
  /** Of the generation or of its entry. */
  readonly id: string;
  /** 0 for all that is left of the charge. */
  readonly amountMicros: Micros;
  readonly reason: string;
  readonly idempotencyKey: string;
};

export async function refundEntry(
  database: Cells,
  action: Action,
  { accountId, id, amountMicros, reason, idempotencyKey }: Refund,
): Promise<EntryRow> {
  const lane = laneOfId(accountId);
  const entryId = entryIdOf(id);
  const values = [entryId, monthOfId(entryId), amountMicros, reason, idempotencyKey] as const;
  const [row] = await change<EntryRow>(database, lane, action, "refund_entry", lane, accountId, ...values);
  return row as EntryRow;
}
