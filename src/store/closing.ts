import { laneOfId } from "../domain/lane.ts";
import type { Cells } from "./driver/cells.ts";
import type { EntryRow } from "./ledger.ts";
import { actionJson, type OperatorAction } from "./operator-log.ts";

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
 * @param action undefined after the first step, which is logged
 */
export async function stepOfClosing(
  database: Cells,
  action: OperatorAction | undefined,
  accountId: string,
  { reason, balance, isEndedElsewhere, rows }: ClosingStep,
): Promise<{ readonly status: StepRow["status"]; readonly entry: EntryRow | undefined }> {
  const lane = laneOfId(accountId);
  const cell = database.at(lane);
  const [step] = await cell.call<StepRow>(
    "close_account",
    action ? actionJson(action) : null,
    lane,
    accountId,
    reason,
    balance,
    isEndedElsewhere,
    rows,
  );
  const { status, entry_id: entryId, month } = step as StepRow;
  const [entry] =
    entryId === null ? [] : await cell.call<EntryRow>("get_entry", lane, accountId, entryId, month);
  return { status, entry };
}
