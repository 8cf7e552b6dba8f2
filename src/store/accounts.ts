import type { NewKey } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import { monthOfId } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { cutPage, type Page } from "../domain/page.ts";
import type { ScopeBits } from "../domain/scope.ts";
import type { Database } from "./driver/database.ts";
import { type Act, actText } from "./operator-log.ts";

export type AccountRow = {
  id: string;
  name: string;
  plan: string;
  balance_micros: bigint;
  held_micros: bigint;
  created_at: Date;
};

export async function createAccount(
  database: Database,
  act: Act,
  id: string,
  name: string,
  plan: string,
): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>("create_account", actText(act), laneOfId(id), id, name, plan);
  return row as AccountRow;
}

export async function getAccount(database: Database, id: string): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>("get_account", laneOfId(id), id);
  if (!row) throw new DomainError("not_found", { message: `There is no account "${id}".` });
  return row;
}

export async function listAccounts(database: Database, page: Page) {
  const rows = await database.call<AccountRow>("list_accounts", page.after, page.size + 1);
  return cutPage(rows, page, (row) => row.id);
}

export async function setAccountPlan(
  database: Database,
  act: Act,
  id: string,
  plan: string,
): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>("set_account_plan", actText(act), laneOfId(id), id, plan);
  return row as AccountRow;
}

type FirstCredit = {
  readonly entryId: string;
  readonly amountMicros: Micros;
  readonly reason: string;
};
type FirstKey = {
  readonly id: string;
  readonly scopes: ScopeBits;
  readonly generated: Omit<NewKey, "secret">;
};

/** Creates an account with a credit and a key if the database has no account. Returns whether it did. */
export async function createFirstAccount(
  database: Database,
  act: Act,
  account: { readonly id: string; readonly name: string; readonly plan: string },
  credit: FirstCredit,
  key: FirstKey,
): Promise<boolean> {
  const [row] = await database.call<{ created: boolean }>(
    "create_first_account",
    actText(act),
    laneOfId(account.id),
    account.id,
    account.name,
    account.plan,
    credit.entryId,
    monthOfId(credit.entryId),
    credit.amountMicros,
    credit.reason,
    key.id,
    Buffer.from(key.generated.fingerprint, "hex"),
    key.scopes,
    key.generated.visibleStart,
    key.generated.visibleEnd,
  );
  return row?.created === true;
}
