import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import { laneOfId } from "../domain/lane.ts";
import type { EntryRow } from "../ledger/store.ts";

export type ClosingRow = sql.ClosingOfRow;

/** What the closing of an account ends. */
export async function closingOf(database: Cells, accountId: string): Promise<ClosingRow> {
  const lane = laneOfId(accountId);
  const [row] = await sql.closingOf(database.at(lane), { lane, id: accountId });
  return row as ClosingRow;
}

type ClosingStep = {
  readonly reason: string;
  /** "written_off", "refunded", or empty for an account without a balance. */
  readonly balance: string;
  /** Whether the first cell and the payment provider store nothing about the account any more. */
  readonly isEndedElsewhere: boolean;
  /** The customer that the payment provider has deleted. */
  readonly customerId?: string | undefined;
  /** Only of the first step of a call. */
  readonly isLogged: boolean;
  /** The number of rows of each table that the step erases. */
  readonly rows: number;
};

/**
 * Makes one step of the closing, and returns what is next: see close_account. The entry is that of the balance.
 */
export async function stepOfClosing(
  database: Cells,
  action: Action,
  accountId: string,
  { reason, balance, isEndedElsewhere, customerId, isLogged, rows }: ClosingStep,
): Promise<{ readonly status: sql.CloseAccountRow["status"]; readonly entry: EntryRow | undefined }> {
  const lane = laneOfId(accountId);
  const cell = database.at(lane);
  const [step] = await sql.closeAccount(database, action, {
    lane,
    id: accountId,
    reason,
    balance,
    endedCustomerId: isEndedElsewhere ? (customerId ?? "") : null,
    isLogged,
    limit: rows,
  });
  const { status, entry_id: id, month } = step as sql.CloseAccountRow;
  const [entry] = id === null || month === null ? [] : await sql.getEntry(cell, { lane, accountId, id, month });
  return { status, entry };
}
