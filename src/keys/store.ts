import * as sql from "../../gen/sql/calls.ts";
import { type Action, laneOfChange } from "../database/action.ts";
import { compareBytes, mergeCells, NAME_PIECES, readNameParts } from "../database/cells/merge-cells.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import type { NewKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import type { KeyQuery } from "../domain/key-query.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import { cutPage, joinPosition, type Page, pageUpTo, splitPosition } from "../domain/page.ts";
import { DEFAULT_SCOPES, toScopeBits } from "../domain/scope.ts";
import type { KeyColumns } from "./fields.ts";

export type KeyRow = sql.KeyView;

export type KeyToCreate = {
  readonly id: string;
  readonly accountId: string;
  /** Only operators choose it; by default, it is that of the parent or the account. */
  readonly plan?: string;
  /** What is left out is the parent's or the default. */
  readonly columns: KeyColumns;
  /** The key of the playground of the member who creates it. */
  readonly isPlayground?: boolean;
};

type GeneratedKey = Omit<NewKey, "secret">;

/** Creates a key; see create_key for what the caller may give. */
export async function createKey(
  database: Cells,
  action: Action,
  key: KeyToCreate,
  { fingerprint, visibleStart, visibleEnd }: GeneratedKey,
): Promise<KeyRow> {
  const { id, accountId, plan, isPlayground, columns } = key;
  const secret = { fingerprint: `\\x${fingerprint}`, visible_start: visibleStart, visible_end: visibleEnd };
  const [row] = await sql.createKey(database, action, {
    lane: laneOfId(accountId),
    accountId,
    key: JSON.stringify({ id, ...secret, plan, ...columns }),
    defaultScopes: toScopeBits(DEFAULT_SCOPES),
    isPlayground,
  });
  if (!row) throw new Error("create_key returned nothing");
  const { wait_seconds: waitSeconds, max_keys_created_per_hour: max } = row;
  if (waitSeconds === 0) return row as KeyRow;
  throw new DomainError("key_creation_limit_reached", {
    message: `The account can create ${max} keys per hour on the plan "${row.plan}". Wait ${waitSeconds} s.`,
    metadata: { plan: row.plan, max_keys_created_per_hour: String(max) },
    retryAfterSeconds: waitSeconds,
  });
}

export async function getKey(database: Cells, accountId: string, id: string): Promise<KeyRow> {
  const lane = laneOfId(id);
  return only(await sql.viewKeys(database.at(lane), { lane, accountId, id, before: "", limit: 1 }), id);
}

export async function listKeys(database: Cells, accountId: string, page: Page, withPlayground: boolean) {
  const lane = laneOfId(accountId);
  const range = { id: "", before: page.after, limit: page.size + 1, withPlayground };
  const rows = await sql.viewKeys(database.at(lane), { lane, accountId, ...range });
  return cutPage(rows, page, (row) => row.id);
}

/** A key with the name of its account, and its place in the results of a search. */
type FoundKeyRow = sql.FoundKeys;

/** The list of the keys whose name contains the text after its start. Those before it have an index. */
const PARTS = 3;

/**
 * A page of the keys of all accounts that match. A page can have fewer keys than its size if some were found by their visible
 * characters before.
 */
export async function searchKeys(database: Cells, query: KeyQuery, page: Page, pieces = NAME_PIECES) {
  const { id, start, end, name } = query;
  const [list, afterName = "", afterId = ""] = splitPosition(page, 2) ?? [0];
  const limit = page.size + 1;
  const order = { compare: compareFound, laneOf: (row: FoundKeyRow) => laneOfId(row.id) };
  const found: FoundKeyRow[] = [];
  if (list < PARTS) {
    const read = (cell: FunctionCaller, last: FoundKeyRow | undefined, count: number) => {
      const after = last ? [last.list, last.sorted_name, last.id] : [list, afterName, afterId];
      return sql.searchKeys(cell, { id, start, end, name, after: JSON.stringify(after), limit: count });
    };
    found.push(...(await mergeCells(database, limit, { ...order, read })));
  }
  if (name !== "" && found.length < limit) {
    const first = list < PARTS ? { sorted_name: "", id: "" } : { sorted_name: afterName, id: afterId };
    const read = (cell: FunctionCaller, last: FoundKeyRow | undefined, count: number) =>
      readNameParts<FoundKeyRow, typeof first>(last ?? first, count, pieces, (after, rows, missing) =>
        sql.searchKeyNames(cell, { search: name, after: after.sorted_name, afterId: after.id, rows, limit: missing }),
      );
    found.push(...(await mergeCells(database, limit - found.length, { ...order, read })));
  }
  const positionOf = (row: FoundKeyRow) => joinPosition([row.list, row.sorted_name, row.id]);
  const last = found[limit - 1];
  const rows = found.filter((row) => row.list === 1 || row.visible_start !== start);
  return pageUpTo(rows, page, positionOf, last && positionOf(last));
}

/** A page of the active keys of all accounts that are older than some days and were not used for so long, the oldest first. */
export async function listUnusedKeys(database: Cells, days: number, page: Page, pieces = NAME_PIECES) {
  const [, id = ""] = splitPosition(page, 1) ?? [];
  const rows = await mergeCells<FoundKeyRow>(database, page.size + 1, {
    read: (cell, last, count) =>
      readNameParts<FoundKeyRow, { id: string }>(last ?? { id }, count, pieces, (after, max, missing) =>
        sql.unusedKeys(cell, { days, after: after.id, rows: max, limit: missing }),
      ),
    compare: (one, other) => compareBytes(one.id, other.id),
    laneOf: (row) => laneOfId(row.id),
  });
  return cutPage(rows, page, (row) => joinPosition([0, row.id]));
}

/** The order of the lists: list 1 is newest first, the others are in the order of the names. */
function compareFound(one: FoundKeyRow, other: FoundKeyRow): number {
  if (one.list !== other.list) return one.list - other.list;
  if (one.list === 1) return compareBytes(other.id, one.id);
  return compareBytes(one.sorted_name, other.sorted_name) || compareBytes(one.id, other.id);
}

/** Once this returns, every server rejects the key. */
export async function revokeKey(database: Cells, action: Action, id: string): Promise<KeyRow> {
  return only(await sql.revokeKey(database, action, { lane: laneOfChange(action, id), id }), id);
}

/** A secret that became public, and why the operator log says that it revoked keys. */
export type Leak = {
  readonly lane: Lane;
  /** In hex. */
  readonly fingerprint: string;
  readonly reason: string;
};

export type LeakedKey = sql.ReportLeaksRow;

/** Revokes the keys of leaked secrets and all keys that they created. Omits secrets that belong to no key. */
export async function reportLeaks(database: Cells, action: Action, leaks: readonly Leak[]): Promise<LeakedKey[]> {
  const lanes = [...Map.groupBy(leaks, ({ lane }) => lane)];
  const found = await Promise.all(
    lanes.map(([lane, items]) => sql.reportLeaks(database, action, { lane, leaks: JSON.stringify(items) })),
  );
  return found.flat();
}

export async function updateKey(database: Cells, action: Action, id: string, changes: KeyColumns): Promise<KeyRow> {
  const lane = laneOfChange(action, id);
  return only(await sql.updateKey(database, action, { lane, id, changes: JSON.stringify(changes) }), id);
}

/** Gives a key a new secret. */
export async function rotateKey(
  database: Cells,
  action: Action,
  id: string,
  { fingerprint, visibleStart, visibleEnd }: GeneratedKey,
  overlapSeconds: number,
): Promise<KeyRow> {
  const lane = laneOfChange(action, id);
  const secret = { fingerprint: Buffer.from(fingerprint, "hex"), visibleStart, visibleEnd, overlapSeconds };
  return only(await sql.rotateKey(database, action, { lane, id, ...secret }), id);
}

export async function setKeyLimit(
  database: Cells,
  action: Action,
  id: string,
  rateLimitRpm: number | undefined,
): Promise<KeyRow> {
  return only(await sql.setKeyLimit(database, action, { lane: laneOfChange(action, id), id, rateLimitRpm }), id);
}

function only(rows: KeyRow[], id: string): KeyRow {
  const [row] = rows;
  if (!row) throw new DomainError("not_found", { message: `There is no key "${id}".` });
  return row;
}
