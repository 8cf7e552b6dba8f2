import { monthOfId } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";
import type { Database } from "./driver/database.ts";

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
  input_tokens: bigint;
  output_tokens: bigint;
  created_at: Date;
};

export type Movement = {
  readonly entryId: string;
  readonly accountId: string;
  readonly kind: "credit" | "adjustment";
  readonly amountMicros: Micros;
  readonly reason: string;
  readonly idempotencyKey: string;
};

export async function moveBalance(database: Database, movement: Movement): Promise<EntryRow> {
  const [row] = await database.call<EntryRow>(
    "move_balance",
    laneOfId(movement.accountId),
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

export async function listEntries(database: Database, accountId: string, page: Page) {
  if (!/^\d{0,18}$/.test(page.after)) throw badToken();
  const before = BigInt(page.after);
  const rows = await database.call<EntryRow>(
    "list_entries",
    laneOfId(accountId),
    accountId,
    before,
    page.size + 1,
  );
  return cutPage(rows, page, (row) => row.seq.toString());
}
