import type { NewKey } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { cutPage, type Page } from "../domain/page.ts";
import type { ScopeBits } from "../domain/scope.ts";
import type { Database } from "./database.ts";

export type KeyRow = {
  id: string;
  account_id: string;
  name: string;
  plan: string;
  scopes: ScopeBits;
  state: "active" | "revoked" | "expired";
  rpm: number;
  visible_start: string;
  visible_end: string;
  created_at: Date;
  revoked_at: Date | null;
  expires_at: Date | null;
  last_used_at: Date | null;
};

export type KeyToCreate = {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  /** Empty: the account's. */
  readonly plan: string;
  readonly scopes: ScopeBits;
  readonly rateLimitRpm: number | undefined;
  /** Operators may give a key more than its plan, key holders may not. */
  readonly mayExceedPlan: boolean;
  readonly expiresAt: Date | undefined;
};

/** Stands for any account: what operators see. */
export const ANY_ACCOUNT = "";

export async function createKey(
  database: Database,
  key: KeyToCreate,
  drawn: Omit<NewKey, "secret">,
): Promise<KeyRow> {
  const [row] = await database.call<KeyRow>(
    "create_key",
    laneOfId(key.accountId),
    key.accountId,
    key.id,
    Buffer.from(drawn.fingerprint, "hex"),
    key.name,
    key.plan,
    key.scopes,
    key.rateLimitRpm ?? null,
    key.mayExceedPlan,
    key.expiresAt ?? null,
    drawn.visibleStart,
    drawn.visibleEnd,
  );
  return row as KeyRow;
}

export async function getKey(database: Database, accountId: string, id: string): Promise<KeyRow> {
  return only(await database.call<KeyRow>("view_keys", laneOfId(id), accountId, id, "", 1), id);
}

export async function listKeys(database: Database, accountId: string, page: Page) {
  const rows = await database.call<KeyRow>(
    "view_keys",
    laneOfId(accountId),
    accountId,
    "",
    page.after,
    page.size + 1,
  );
  return cutPage(rows, page, (row) => row.id);
}

/** When this returns, no later admission on any server finds the key active. */
export async function revokeKey(database: Database, accountId: string, id: string): Promise<KeyRow> {
  return only(await database.call<KeyRow>("revoke_key", laneOfId(id), accountId, id), id);
}

export async function setKeyLimit(
  database: Database,
  id: string,
  rateLimitRpm: number | undefined,
): Promise<KeyRow> {
  return only(await database.call<KeyRow>("set_key_limit", laneOfId(id), id, rateLimitRpm ?? null), id);
}

function only(rows: KeyRow[], id: string): KeyRow {
  const [row] = rows;
  if (!row) throw new DomainError("not_found", { message: `There is no key "${id}".` });
  return row;
}
