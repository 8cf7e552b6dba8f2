import * as sql from "../../gen/sql/calls.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Cells } from "./driver/cells.ts";

export type StatementRow = sql.GetStatementRow;

/** What changed the balance of an account from one time until before another, between the two balances. */
export async function getStatement(database: Cells, accountId: string, from: Date, to: Date): Promise<StatementRow[]> {
  const lane = laneOfId(accountId);
  const rows = await sql.getStatement(database.at(lane), { lane, accountId, from, to });
  if (rows.length === 0) throw new DomainError("not_found", { message: "Ledger entries of this month are archived." });
  return rows;
}
