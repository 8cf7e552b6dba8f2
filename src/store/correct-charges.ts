import { hash } from "node:crypto";
import { entryIdOf, monthOfId } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { QUARTER_MS } from "../domain/periods.ts";
import type { Prices } from "../domain/price.ts";
import type { Cells } from "./driver/cells.ts";
import type { EntryRow } from "./ledger.ts";
import { lanesInUse } from "./named-cell.ts";
import { actionJson, type OperatorAction } from "./operator-log.ts";
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

type AccountWithModel = { account_id: string; account_name: string };
type Piece = RerateSum & { next_seq: bigint | null };

/** The entries that a statement reads. With the lock of their lane, it takes some ten milliseconds. */
const PIECE_ENTRIES = 500;

/** The result of each account with charges that differ, account by account and piece by piece. */
export async function* rerate(
  database: Cells,
  action: OperatorAction,
  rerating: Rerating,
): AsyncGenerator<RerateSum & AccountWithModel, void> {
  const { model, from, to } = rerating;
  const lanes = await Promise.all(database.all.map((_, cell) => lanesInUse(database, cell)));
  const [first, end] = [Math.floor(from.getTime() / QUARTER_MS), Math.ceil(to.getTime() / QUARTER_MS)];
  for (const lane of lanes.flat().sort((a, b) => a - b)) {
    const accounts = await database
      .at(lane)
      .call<AccountWithModel>("accounts_with_model", lane, model, first, end);
    for (const account of accounts) {
      const sum = await rerateAccount(database, action, rerating, account.account_id);
      if (sum.adjusted + sum.refused + sum.skipped > 0n) yield { ...account, ...sum };
    }
  }
}

async function rerateAccount(
  database: Cells,
  action: OperatorAction,
  rerating: Rerating,
  accountId: string,
): Promise<RerateSum> {
  const { model, from, to, prices, reason, apply } = rerating;
  const lane = laneOfId(accountId);
  const cell = database.at(lane);
  const [range] = await cell.call<{ first_seq: bigint; end_seq: bigint }>(
    "ledger_range",
    lane,
    accountId,
    from,
    to,
  );
  const sum = {
    adjusted: 0n,
    credit_micros: 0n,
    debit_micros: 0n,
    refused: 0n,
    refused_micros: 0n,
    skipped: 0n,
  };
  const act = actionJson({ ...action, target: accountId });
  const rest = [model, arrayOfRates(prices), causeOf(rerating), reason, apply, PIECE_ENTRIES] as const;
  let next = range?.first_seq ?? null;
  while (range && next !== null) {
    const [piece]: Piece[] = await cell.call<Piece>(
      "rerate_entries",
      act,
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
  action: OperatorAction,
  { accountId, id, amountMicros, reason, idempotencyKey }: Refund,
): Promise<EntryRow> {
  const lane = laneOfId(accountId);
  const entryId = entryIdOf(id);
  const values = [entryId, monthOfId(entryId), amountMicros, reason, `key_${idempotencyKey}`] as const;
  const [row] = await database
    .at(lane)
    .call<EntryRow>("refund_entry", actionJson(action), lane, accountId, ...values);
  return row as EntryRow;
}
