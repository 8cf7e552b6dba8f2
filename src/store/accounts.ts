import type { NewKey } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import { monthOfId } from "../domain/ids.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { cutPage, type Page } from "../domain/page.ts";
import type { ScopeBits } from "../domain/scope.ts";
import type { Database } from "./driver/database.ts";
import { actionJson, type OperatorAction } from "./operator-log.ts";

export type AccountRow = {
  id: string;
  name: string;
  plan: string;
  balance_micros: bigint;
  held_micros: bigint;
  created_at: Date;
  suspended_at: Date | null;
  external_id: string;
  email: string;
  notes: string;
};

/** An undefined field is not changed; an empty one is removed. */
export type AccountProfile = {
  readonly externalId: string | undefined;
  readonly email: string | undefined;
  readonly notes: string | undefined;
};

export async function createAccount(
  database: Database,
  action: OperatorAction,
  { id, name, plan }: { readonly id: string; readonly name: string; readonly plan: string },
  profile?: AccountProfile,
): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>(
    "create_account",
    actionJson(action),
    laneOfId(id),
    id,
    name,
    plan,
    profile?.externalId ?? null,
    profile?.email ?? null,
    profile?.notes ?? null,
  );
  return row as AccountRow;
}

export async function getAccount(database: Database, id: string): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>("get_account", laneOfId(id), id);
  if (!row) throw new DomainError("not_found", { message: `There is no account "${id}".` });
  return row;
}

/** The account with this id, external id or name. What several accounts have as either is refused. */
export async function findAccount(database: Database, reference: string): Promise<AccountRow> {
  const [row, another] = await database.call<AccountRow>("find_accounts", reference);
  if (another) {
    throw DomainError.ofField("account_id", "is the name or external id of several accounts; give the id");
  }
  if (!row) throw new DomainError("not_found", { message: `There is no account "${reference}".` });
  return row;
}

export async function listAccounts(database: Database, page: Page) {
  const rows = await database.call<AccountRow>("list_accounts", page.after, page.size + 1);
  return cutPage(rows, page, (row) => row.id);
}

export async function setAccountPlan(
  database: Database,
  action: OperatorAction,
  id: string,
  plan: string,
): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>(
    "set_account_plan",
    actionJson(action),
    laneOfId(id),
    id,
    plan,
  );
  return row as AccountRow;
}

export async function updateAccount(
  database: Database,
  action: OperatorAction,
  id: string,
  { name, externalId, email, notes }: AccountProfile & { readonly name: string | undefined },
): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>(
    "update_account",
    actionJson(action),
    laneOfId(id),
    id,
    name ?? null,
    externalId ?? null,
    email ?? null,
    notes ?? null,
  );
  return row as AccountRow;
}

/** Once this returns, every server refuses the account's calls, or admits them again. */
export async function setAccountSuspended(
  database: Database,
  action: OperatorAction,
  id: string,
  suspended: boolean,
): Promise<AccountRow> {
  const lane = laneOfId(id);
  const [row] = await database.call<AccountRow>(
    "set_account_suspended",
    actionJson(action),
    lane,
    id,
    suspended,
  );
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
  action: OperatorAction,
  account: { readonly id: string; readonly name: string; readonly plan: string },
  credit: FirstCredit,
  key: FirstKey,
): Promise<boolean> {
  const [row] = await database.call<{ created: boolean }>(
    "create_first_account",
    actionJson(action),
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
