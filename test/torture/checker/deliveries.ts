import { setTimeout as wait } from "node:timers/promises";
import type postgres from "postgres";
import type { Arena } from "../arena.ts";
import type { Episode } from "../episode.ts";
import { ofCells, type Violation } from "./facts.ts";

const RULE = "14 events exist once and are delivered";

type Delivery = { readonly of: string; readonly event_id: string; readonly state: string };

/**
 * Invariant 14: the events of each account have no gap and a cause, each has a delivery for each webhook, what is listed as delivered was accepted,
 * and first attempts are in order. Nothing arrives that was not committed. Retries are made due at once.
 */
export async function checkDeliveries(arena: Arena, episodes: readonly Episode[], patienceMs: number): Promise<Violation[]> {
  const { endpoint } = arena;
  const violations: Violation[] = [];
  const report = (text: string) => violations.push({ rule: RULE, text });
  const losesCommits = episodes.some((episode) => episode.lostCommits || episode.splitBrain);
  if (!episodes.some(({ hasClockSteps }) => hasClockSteps))
    for (const { id } of await ofCells(arena.owners, endlessClaims)) report(`the claim of ${id} does not end`);
  endpoint.isCalm = true;
  const until = performance.now() + patienceMs;
  let deliveries: Awaited<ReturnType<typeof listDeliveries>>;
  // Servers still write events, such as those of payments that they look up: one can be written after the last pending delivery.
  do {
    while ((await ofCells(arena.owners, makeDue)).length > 0 && performance.now() < until) await wait(500);
    deliveries = await ofCells(arena.owners, listDeliveries);
  } while (deliveries.some(({ state }) => state === "pending") && performance.now() < until);
  endpoint.isCalm = false;
  for (const { text } of await ofCells(arena.owners, findMissing)) report(text);
  const arrivals = [...endpoint.arrivals];
  const events = new Set((await ofCells(arena.owners, eventIds)).map(({ id }) => id));
  if (deliveries.length === 0) report("no event has a delivery");
  for (const { of, event_id: id, state } of deliveries) {
    if (state === "pending") report(`${id} is pending for ${of} after ${patienceMs} ms`);
    if (state === "delivered" && !endpoint.accepted.has(`${of} ${id}`) && !losesCommits)
      report(`${id} is listed as delivered to ${of}, which did not accept it`);
  }
  if (losesCommits) return violations;
  const last = new Map<string, number>();
  const seen = new Set<string>();
  for (const { of, eventId, accountId, seq } of arrivals) {
    if (!events.has(eventId)) report(`${eventId} arrived at ${of}, but does not exist`);
    if (seen.has(`${of} ${eventId}`)) continue;
    seen.add(`${of} ${eventId}`);
    const queue = `${of} ${accountId}`;
    if (seq < (last.get(queue) ?? 0)) report(`${eventId} with seq ${seq} arrived at ${of} after ${last.get(queue)}`);
    last.set(queue, Math.max(seq, last.get(queue) ?? 0));
  }
  return violations;
}

function endlessClaims(owner: postgres.Sql): Promise<{ id: string }[]> {
  return owner`
    SELECT q.webhook_id AS id FROM webhook_queues q WHERE q.claimed_until > clock_timestamp() + interval '1 minute'`;
}

/**
 * Makes pending deliveries of the lanes of this cell due, in the order of the events, and returns them. Rows that servers have locked
 * are skipped: waiting for them while other rows are locked could be a deadlock. Queues of lanes that other cells own are not made due:
 * servers would claim these again and again instead of the others.
 */
async function makeDue(owner: postgres.Sql): Promise<object[]> {
  await owner`
    UPDATE deliveries d SET due_at = d.created_at - interval '1 day'
      FROM (SELECT i.ctid FROM deliveries i WHERE i.state = 'pending' FOR UPDATE SKIP LOCKED) free
      WHERE d.ctid = free.ctid AND ${isOwned(owner)}`;
  await owner`
    UPDATE webhook_queues q SET due_at = '-infinity', claimed_until = '-infinity', blocked_until = '-infinity'
      FROM (SELECT i.ctid FROM webhook_queues i WHERE i.claimed_until < clock_timestamp() - interval '20 seconds'
        FOR UPDATE SKIP LOCKED) free
      WHERE q.ctid = free.ctid AND EXISTS (SELECT 1 FROM deliveries d
        WHERE d.lane = q.lane AND d.webhook_id = q.webhook_id AND d.state = 'pending' AND ${isOwned(owner)})`;
  return await owner`SELECT d.lane FROM deliveries d WHERE d.state = 'pending' AND ${isOwned(owner)}`;
}

/** Gaps in the numbers of events, movements without exactly one event, and events without a movement or a delivery. A webhook may be created while an event is written. */
function findMissing(owner: postgres.Sql): Promise<{ text: string }[]> {
  return owner`
    SELECT concat(i.account_id, ' has ', e.count, ' events up to ', i.seq) AS text FROM event_ends i
    CROSS JOIN LATERAL (SELECT count(*) FROM events e WHERE e.lane = i.lane AND e.account_id = i.account_id) e
    WHERE e.count <> i.seq
    UNION ALL
    SELECT concat('ledger row ', l.id, ' has ', e.count, ' events') FROM ledger l
    CROSS JOIN LATERAL (SELECT count(*) FROM events e
      WHERE e.lane = l.lane AND e.account_id = l.account_id AND e.data ->> 'entry_id' = l.id) e
    WHERE l.kind IN ('credit', 'adjustment') AND e.count <> 1
    UNION ALL
    SELECT concat(e.id, ' ', e.type, ' has no ledger row') FROM events e
    WHERE e.type IN ('credit.posted', 'adjustment.posted') AND NOT EXISTS (SELECT 1 FROM ledger l
      WHERE l.lane = e.lane AND l.account_id = e.account_id AND l.id = e.data ->> 'entry_id')
      AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = e.lane AND NOT l.is_owned)
    UNION ALL
    SELECT concat(e.id, ' ', e.type, ' has no delivery for ', w.url) FROM events e
    JOIN webhooks w ON w.lane IN (e.lane, 1024) AND w.account_id IN (e.account_id, '') AND e.created_at > w.created_at + interval '2 seconds'
    WHERE NOT EXISTS (SELECT 1 FROM deliveries d
      WHERE d.lane = e.lane AND d.account_id = e.account_id AND d.seq = e.seq AND d.webhook_id = w.id)`;
}

function eventIds(owner: postgres.Sql): Promise<{ id: string }[]> {
  return owner`SELECT id FROM events`;
}

function listDeliveries(owner: postgres.Sql): Promise<Delivery[]> {
  return owner<Delivery[]>`
    SELECT regexp_replace(w.url, '^.*/', '') AS of, d.event_id, d.state FROM deliveries d
    JOIN webhooks w ON w.lane IN (d.lane, 1024) AND w.id = d.webhook_id
    WHERE ${isOwned(owner)}`;
}

/** A cell that was split off has copies of what other cells own. Only the first cell owns lane 0 and the events of no account. */
function isOwned(sql: postgres.ISql) {
  return sql`NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = CASE d.lane WHEN 1024 THEN 0 ELSE d.lane END AND NOT l.is_owned)`;
}
