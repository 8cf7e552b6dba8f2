import { type Entry, isReply } from "../history.ts";
import type { Facts, Window } from "./facts.ts";

/** Confirmed changes that are gone after a failover with asynchronous replication. */
export type LostCommits = {
  readonly replies: number;
  /** What the replies cost. */
  readonly micros: bigint;
  /** Streams that were delivered in part, and whose hold is gone. */
  readonly brokenStreams: number;
  readonly credits: number;
  readonly revocations: number;
  readonly keys: number;
  /** The time from the first confirmation of a lost change to the failure. */
  readonly spanMs: number;
};

type Change = "reply" | "broken stream" | "credit" | "revocation" | "key";

/** Whether the call ran in this time. */
export function isDuring(entry: Entry, window: Window | undefined): boolean {
  return window !== undefined && entry.endedAt >= window.from && entry.sentAt <= window.to;
}

/**
 * Removes the calls whose confirmed change is gone, so that the other checks apply to the rest. Only calls in the time in which
 * commits may be lost are removed: all others are checked.
 */
export function withoutLostCommits(facts: Facts): { facts: Facts; lost: LostCommits } {
  const stored = {
    entries: new Set(facts.rows.map(({ id }) => id)),
    movements: new Set(facts.rows.map(({ idempotencyKey }) => idempotencyKey)),
  };
  const lost = new Map<Entry, Change>();
  for (const entry of facts.entries) {
    if (!isDuring(entry, facts.lostCommits)) continue;
    const change = lostChange(entry, facts, stored);
    if (change) lost.set(entry, change);
  }
  const of = (change: Change) => [...lost].filter(([, each]) => each === change).map(([entry]) => entry);
  const failedAt = facts.databaseKills[0] ?? 0;
  return {
    facts: { ...facts, entries: facts.entries.filter((entry) => !lost.has(entry)) },
    lost: {
      replies: of("reply").length,
      micros: of("reply").reduce((sum, { costMicros = 0n }) => sum + costMicros, 0n),
      brokenStreams: of("broken stream").length,
      credits: of("credit").length,
      revocations: of("revocation").length,
      keys: of("key").length,
      spanMs: Math.max(0, ...[...lost.keys()].map(({ endedAt }) => failedAt - endedAt)),
    },
  };
}

function lostChange(
  entry: Entry,
  facts: Facts,
  stored: { readonly entries: ReadonlySet<string>; readonly movements: ReadonlySet<string | null> },
): Change | undefined {
  if (isReply(entry)) return stored.entries.has(entry.id.replace("gen_", "led_")) ? undefined : "reply";
  if (entry.kind === "stream" && entry.pieces > 0) {
    return facts.rowsByRequest.has(entry.requestId) ? undefined : "broken stream";
  }
  if (entry.ending !== "answered" || entry.status !== 200) return undefined;
  const { kind, id, idempotencyKey = "", victim = "" } = entry;
  if (kind === "credit") return stored.movements.has(idempotencyKey) ? undefined : "credit";
  if (kind === "create_key") return facts.keyStates.has(id) ? undefined : "key";
  if (kind !== "revoke_key") return undefined;
  return facts.keyStates.get(facts.tenants.keys.get(victim)?.id ?? "") === "revoked" ? undefined : "revocation";
}
