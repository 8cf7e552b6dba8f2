import { randomBytes } from "node:crypto";
import type postgres from "postgres";
import type { Database } from "../../src/database/driver/database.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import type { LimitToSet } from "../../src/domain/limit.ts";
import { createKey } from "../../src/keys/store.ts";
import { type LimitOwner, setLimit } from "../../src/limits/store.ts";
import { actionOfKey, TEST_ACTION } from "./action.ts";
import { type Payer, payerOf } from "./payer.ts";
import { typeIds } from "./type-ids.ts";

/** A limit of all models for all users. */
export function limitOf(limit: Partial<LimitToSet> & Pick<LimitToSet, "metric" | "amount">): LimitToSet {
  const window = limit.metric === "concurrent" ? "" : "day";
  return { window, model: "", perUser: false, temporary: undefined, ...limit };
}

export async function setTestLimit(database: Database, owner: LimitOwner, limit: Parameters<typeof limitOf>[0]): Promise<string> {
  const row = await setLimit(database, TEST_ACTION, owner, limitOf(limit), typeIds);
  return row.id;
}

/** A key that another key created. */
export async function createChild(database: Database, parent: Payer): Promise<Payer> {
  const lane = laneOfId(parent.accountId);
  const key = {
    id: typeIds.key(lane),
    accountId: parent.accountId,
    columns: { name: "child" },
  };
  const newKey = generateKey(lane, randomBytes);
  await createKey(database, actionOfKey(parent), key, newKey);
  return payerOf(parent.accountId, key.id, newKey.fingerprint);
}

/** Checks every counter of an account against the ledger and the open holds, directly in the tables. Empty if all are right. */
export async function limitProblems(owner: postgres.Sql, accountId: string): Promise<object[]> {
  return await owner`
    SELECT c.account_id, l.metric, l.period, c.user_id, c.spent, e.spent AS ledger, c.held, h.held AS holds
    FROM (
      SELECT i.lane, i.account_id, i.subject_id, i.user_id, x.* FROM vx.limit_counters i
      CROSS JOIN LATERAL unnest((i.counter).limit_ids, (i.counter).window_ends, (i.counter).spent, (i.counter).held, (i.counter).counted_since)
        AS x (limit_id, window_end, spent, held, counted_since)
    ) c
    JOIN vx.limits l ON l.id = c.limit_id
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(CASE l.metric WHEN 'cost' THEN -e.amount_micros WHEN 'generations' THEN 1 WHEN 'concurrent' THEN 0
          ELSE e.input + e.cached_input + e.cache_write + e.output + e.reasoning END), 0) AS spent
      FROM vx.ledger e
      WHERE e.account_id = c.account_id AND e.kind = 'generation' AND (l.model = '' OR e.model = l.model)
        AND (NOT l.per_user OR e.user_id = c.user_id)
        AND e.created_at < c.window_end AND e.created_at >= greatest(c.counted_since, CASE WHEN isfinite(c.window_end)
          THEN c.window_end - ('1 ' || l.period)::interval ELSE '-infinity' END)
        AND (c.subject_id = c.account_id OR c.subject_id = e.key_id OR EXISTS (
          SELECT 1 FROM vx.keys k WHERE k.id = e.key_id AND c.subject_id = ANY (k.ancestors)))
    ) e
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(x.amount), 0) AS held FROM vx.holds o CROSS JOIN LATERAL unnest(o.counters) n
      CROSS JOIN LATERAL unnest(n.limit_ids, n.amounts) AS x (limit_id, amount)
      WHERE x.limit_id = c.limit_id AND n.subject_id = c.subject_id AND n.user_id = c.user_id
    ) h
    WHERE c.account_id = ${accountId} AND (c.spent <> e.spent OR c.held <> h.held OR c.held < 0)`;
}

/** Lets time pass for the counters of an account: moves their windows back. */
export async function passTime(owner: postgres.Sql, accountId: string, interval: string): Promise<void> {
  await owner`
    UPDATE vx.limit_counters SET
      counter.window_ends = ARRAY(SELECT e - ${interval}::interval FROM unnest((counter).window_ends) e),
      counter.counted_since = ARRAY(SELECT e - ${interval}::interval FROM unnest((counter).counted_since) e),
      expires_at = expires_at - ${interval}::interval
    WHERE account_id = ${accountId}`;
}

/** Adds to what a limit has counted, in all of its counters. */
export async function addToCounters(
  owner: postgres.Sql,
  limitId: string,
  { spent = 0, held = 0 }: { readonly spent?: number; readonly held?: number },
): Promise<void> {
  await owner`
    UPDATE vx.limit_counters c SET
      counter.spent[i] = (counter).spent[i] + ${spent}, counter.held[i] = (counter).held[i] + ${held}
    FROM (SELECT ctid AS place, array_position((counter).limit_ids, ${limitId}) AS i FROM vx.limit_counters) p
    WHERE c.ctid = p.place AND i IS NOT NULL`;
}
