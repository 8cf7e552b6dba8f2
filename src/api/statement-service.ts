import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { GetStatementRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { StatementService } from "../../gen/vx/v1/statement_pb.js";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { currency, formatMicros } from "../domain/money.ts";
import type { Cells } from "../store/driver/cells.ts";
import { getStatement, type StatementRow } from "../store/statements.ts";
import { currentTimeMs } from "../store/usage-sums.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";
import { accountIdToRead } from "./named-account.ts";

/** After this time, no entry of the month is still being written: a transaction ends earlier. */
const LAST_CHARGES_MS = 60_000;

export const statementService = defineService(StatementService, {
  getStatement: async ({ database }, { month }, { key: { accountId } }) => await viewStatement(database, accountId, month),
});

export async function getAnyStatement(deps: Pick<Deps, "database">, { accountId, month }: GetStatementRequest, call: ApiCall) {
  const id = await accountIdToRead(deps, call, accountId);
  return { statement: await viewStatement(deps.database, id, month) };
}

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
