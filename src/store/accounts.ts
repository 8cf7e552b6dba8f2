import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { cutPage, type Page } from "../domain/page.ts";
import type { Database } from "./database.ts";

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
  id: string,
  name: string,
  plan: string,
): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>("create_account", laneOfId(id), id, name, plan);
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

export async function setAccountPlan(database: Database, id: string, plan: string): Promise<AccountRow> {
  const [row] = await database.call<AccountRow>("set_account_plan", laneOfId(id), id, plan);
  return row as AccountRow;
}

/** Creates the account only if there is no other one yet. */
export async function createFirstAccount(database: Database, id: string, name: string, plan: string) {
  const [row] = await database.call<AccountRow>("create_first_account", laneOfId(id), id, name, plan);
  return row;
}
