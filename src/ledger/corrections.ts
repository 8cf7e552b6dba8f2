import { hash } from "node:crypto";
import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import { allLanesInUse } from "../database/cells/named-cell.ts";
import type { Cells } from "../database/driver/cells.ts";
import { entryIdOf, monthOfId } from "../domain/ids.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { QUARTER_MS } from "../domain/periods.ts";
import type { Prices } from "../domain/price.ts";
import { arrayOfRates } from "../prices/store.ts";
import type { EntryRow } from "./store.ts";

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

export type RerateSum = Omit<sql.RerateEntriesRow, "next_seq">;

type Account = Omit<sql.AccountsWithModelRow, "has_used">;

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
    const range = { from: first, end, after, limit };
    const page: sql.AccountsWithModelRow[] = await sql.accountsWithModel(database.at(lane), { lane, model, ...range });
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
  const [range] = await sql.ledgerRange(cell, { lane, accountId, from, to });
  const sum = {
    adjusted: 0n,
    credit_micros: 0n,
    debit_micros: 0n,
    refused: 0n,
    refused_micros: 0n,
    skipped: 0n,
  };
  const ofAccount = { ...action, target: accountId };
  const rest = { model, rates: arrayOfRates(prices), cause: causeOf(rerating), reason, apply, limit };
  let next = range?.first_seq ?? null;
  while (range && next !== null) {
    await check();
    const part = { lane, accountId, first: next, end: range.end_seq, ...rest };
    const [piece]: sql.RerateEntriesRow[] = await sql.rerateEntries(database, ofAccount, part);
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
  const entryId = entryIdOf(id);
  const place = { lane: laneOfId(accountId), accountId, entryId, month: monthOfId(entryId) };
  const [row] = await sql.refundEntry(database, action, { ...place, micros: amountMicros, reason, idempotencyKey });
  return row as EntryRow;
}
