import type { NewKey } from "../domain/api-key.ts";
import { DomainError } from "../domain/errors.ts";
import type { KeyQuery } from "../domain/key-query.ts";
import { laneOfId } from "../domain/lane.ts";
import { cutPage, joinPosition, type Page, splitPosition } from "../domain/page.ts";
import { DEFAULT_SCOPES, type ScopeBits, toScopeBits } from "../domain/scope.ts";
import type { Database } from "./driver/database.ts";
import { actionJson, type OperatorAction } from "./operator-log.ts";

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
  readonly rateLimitRpm: number | undefined;
  readonly expiresAt: Date | undefined;
};

/** A key that an operator creates. */
type OperatorKey = KeyToCreate & {
  /** Empty for the plan of the account. */
  readonly plan: string;
  readonly scopes: ScopeBits;
};

/** A key created by another key of the account. Undefined fields are inherited from the parent. */
type ChildKey = KeyToCreate & {
  readonly parentId: string;
  readonly scopes: ScopeBits | undefined;
};

type GeneratedKey = Omit<NewKey, "secret">;

export async function createKey(
  database: Database,
  action: OperatorAction,
  key: OperatorKey,
  generated: GeneratedKey,
): Promise<KeyRow> {
  const [row] = await database.call<KeyRow>(
    "create_key",
    actionJson(action),
    laneOfId(key.accountId),
    key.accountId,
    key.id,
    Buffer.from(generated.fingerprint, "hex"),
    key.name,
    key.plan,
    key.scopes,
    key.rateLimitRpm ?? null,
    key.expiresAt ?? null,
    generated.visibleStart,
    generated.visibleEnd,
  );
  return row as KeyRow;
}

export async function createChildKey(
  database: Database,
  key: ChildKey,
  generated: GeneratedKey,
): Promise<KeyRow> {
  const [row] = await database.call<KeyRow & { wait_seconds: number; max_keys_created_per_hour: number }>(
    "create_child_key",
    laneOfId(key.accountId),
    key.accountId,
    key.parentId,
    key.id,
    Buffer.from(generated.fingerprint, "hex"),
    key.name,
    key.scopes ?? 0,
    toScopeBits(DEFAULT_SCOPES),
    key.rateLimitRpm ?? null,
    key.expiresAt ?? null,
    generated.visibleStart,
    generated.visibleEnd,
  );
  if (!row) throw new Error("create_child_key returned nothing");
  const { wait_seconds: waitSeconds, max_keys_created_per_hour: max } = row;
  if (waitSeconds === 0) return row;
  throw new DomainError("key_creation_limit_reached", {
    message: `The account's keys can create ${max} keys per hour on the plan "${row.plan}". Wait ${waitSeconds} s.`,
    metadata: { plan: row.plan, max_keys_created_per_hour: String(max) },
    retryAfterSeconds: waitSeconds,
  });
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

/** A key with the name of its account, and its place in the results of a search. */
export type FoundKeyRow = KeyRow & { account_name: string; list: number; sorted_name: string };

/** A page of the keys of all accounts that match. */
export async function searchKeys(database: Database, { id, start, end, name }: KeyQuery, page: Page) {
  const after = JSON.stringify(splitPosition(page, 2) ?? [0]);
  const rows = await database.call<FoundKeyRow>("search_keys", id, start, end, name, after, page.size + 1);
  return cutPage(rows, page, (row) => joinPosition([row.list, row.sorted_name, row.id]));
}

/** Once this returns, every server rejects the key at admission. */
export async function revokeKey(database: Database, accountId: string, id: string): Promise<KeyRow> {
  return only(await database.call<KeyRow>("revoke_key", laneOfId(id), accountId, id), id);
}

/** The same for an operator, who may revoke a key of any account. */
export async function revokeAnyKey(database: Database, action: OperatorAction, id: string): Promise<KeyRow> {
  return only(await database.call<KeyRow>("revoke_any_key", actionJson(action), laneOfId(id), id), id);
}

export async function setKeyLimit(
  database: Database,
  action: OperatorAction,
  id: string,
  rateLimitRpm: number | undefined,
): Promise<KeyRow> {
  const lane = laneOfId(id);
  const rows = await database.call<KeyRow>(
    "set_key_limit",
    actionJson(action),
    lane,
    id,
    rateLimitRpm ?? null,
  );
  return only(rows, id);
}

function only(rows: KeyRow[], id: string): KeyRow {
  const [row] = rows;
  if (!row) throw new DomainError("not_found", { message: `There is no key "${id}".` });
  return row;
}
