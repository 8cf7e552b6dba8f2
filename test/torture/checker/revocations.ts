import type { Entry } from "../history.ts";
import { describe, type Facts, type Violation } from "./facts.ts";
import { isDuring } from "./lost-commits.ts";

const RULE = "5 nothing is admitted after a revocation";
const STREAM_ENDS_MS = 1_000;

export type Revocations = { readonly revoked: number; readonly after: number; readonly admitted: number };

/** Invariant 5: a call sent after RevokeKey has responded is refused by every server. */
export function checkRevocations(facts: Facts): { violations: Violation[]; figures: Revocations } {
  const violations: Violation[] = [];
  let [revoked, after, admitted] = [0, 0, 0];
  for (const revocation of facts.entries) {
    if (revocation.kind !== "revoke_key" || revocation.ending !== "answered" || revocation.status !== 200) continue;
    revoked++;
    for (const entry of facts.entries) {
      if (entry.key !== revocation.victim || entry.ending === "unreached") continue;
      if (entry.sentAt <= revocation.endedAt) {
        if (facts.isCalm) checkStream(facts, entry, revocation.endedAt, violations);
        continue;
      }
      if (isDuring(entry, facts.splitBrain)) continue;
      after++;
      if (entry.ending !== "answered" || entry.status >= 500 || entry.status === 401) continue;
      admitted++;
      violations.push({ rule: RULE, text: `admitted after the revocation: ${describe(entry)}` });
    }
  }
  return { violations, figures: { revoked, after, admitted } };
}

/** A stream must end within one second; on an overloaded machine, within the time that responses take. */
function checkStream(facts: Facts, entry: Entry, revokedAt: number, violations: Violation[]): void {
  if (entry.kind !== "stream") return;
  const goesOnMs = entry.endedAt - revokedAt;
  if (goesOnMs <= STREAM_ENDS_MS) return;
  const slowestMs = Math.max(
    ...facts.entries
      .filter(({ kind, sentAt, endedAt }) => kind === "me" && endedAt > revokedAt && sentAt < entry.endedAt)
      .map(({ sentAt, endedAt }) => endedAt - sentAt),
    0,
  );
  if (goesOnMs <= STREAM_ENDS_MS + 2 * slowestMs) return;
  const text = `continued for ${Math.round(goesOnMs)} ms (slowest response ${Math.round(slowestMs)} ms): ${describe(entry)}`;
  violations.push({ rule: RULE, text });
}
