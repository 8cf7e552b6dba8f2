import { laneOfId } from "../domain/lane.ts";
import { type Action, change } from "./action.ts";
import type { Cells } from "./driver/cells.ts";
import type { EntryRow } from "./ledger.ts";

export type ClosingRow = {
  active_keys: bigint;
  webhooks: bigint;
  /** The ids of top-ups, separated by commas. */
  pending_topups: string;
  payment_method: string;
};

/** What the closing of an account ends. */
export async function closingOf(database: Cells, accountId: string): Promise<ClosingRow> {
  const lane = laneOfId(accountId);
  const [row] = await database.at(lane).call<ClosingRow>("closing_of", lane, accountId);
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

type StepRow = {
  readonly status: "running" | "elsewhere" | "erasing" | "closed";
  readonly entry_id: string | null;
  readonly month: number | null;
};

/**
 * Makes one step of the closing, and returns what is next: see close_account. The entry is that of the balance.
 */
export async function stepOfClosing(
  database: Cells,
  action: Action,
  accountId: string,
  { reason, balance, isEndedElsewhere, customerId, isLogged, rows }: ClosingStep,
): Promise<{ readonly status: StepRow["status"]; readonly entry: EntryRow | undefined }> {
  const lane = laneOfId(accountId);
  const cell = database.at(lane);
  const [step] = await change<StepRow>(
    database,
    lane,
    action,
    "close_account",
    lane,
    accountId,
    reason,
    balance,
    isEndedElsewhere ? (customerId ?? "") : null,
    isLogged,
    rows,
  );
  const { status, entry_id: entryId, month } = step as StepRow;
  const [entry] = entryId === null ? [] : await cell.call<EntryRow>("get_entry", lane, accountId, entryId, month);
  return { status, entry };
}
