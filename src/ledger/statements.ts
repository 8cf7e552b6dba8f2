import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import * as sql from "../../gen/sql/calls.ts";
import type { Cells } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { currency, formatMicros } from "../domain/money.ts";
import { currentTimeMs } from "../usage/sums.ts";

export type StatementRow = sql.GetStatementRow;

/** What changed the balance of an account from one time until before another, between the two balances. */
export async function getStatement(database: Cells, accountId: string, from: Date, to: Date): Promise<StatementRow[]> {
  const lane = laneOfId(accountId);
  const rows = await sql.getStatement(database.at(lane), { lane, accountId, from, to });
  if (rows.length === 0) throw new DomainError("not_found", { message: "Ledger entries of this month are archived." });
  return rows;
}

/** After this time, no entry of the month is still being written: a transaction ends earlier. */
const LAST_CHARGES_MS = 60_000;

export async function viewStatement(database: Cells, accountId: string, month: string) {
  const from = new Date(`${month}-01T00:00:00Z`);
  const to = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1));
  const nowMs = await currentTimeMs(database.at(laneOfId(accountId)));
  if (from.getTime() > nowMs) throw DomainError.ofField("month", "must not be in the future");
  const rows = await getStatement(database, accountId, from, to);
  const sumOf = (kind: StatementRow["kind"]) =>
    rows.reduce((sum, row) => (row.kind === kind ? sum + row.amount_micros : sum), 0n);
  return {
    month,
    accountId,
    currency: currency().code,
    isFinal: to.getTime() + LAST_CHARGES_MS <= nowMs,
    openingBalanceMicros: sumOf("opening_balance"),
    creditsMicros: sumOf("credit"),
    topupsMicros: sumOf("topup"),
    chargesMicros: sumOf("generation"),
    refundsMicros: sumOf("refund"),
    adjustmentsMicros: sumOf("adjustment"),
    expiriesMicros: sumOf("expiry"),
    closingBalanceMicros: sumOf("closing_balance"),
    lines: rows.map((row) => ({
      kind: row.kind,
      ...(row.created_at ? { createdAt: timestampFromDate(row.created_at) } : {}),
      id: row.id,
      description: row.reason,
      model: row.model,
      entries: row.entries,
      inputTokens: row.input,
      outputTokens: row.output,
      amountMicros: row.amount_micros,
      amount: formatMicros(row.amount_micros),
    })),
  };
}
