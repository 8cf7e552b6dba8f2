import type { Entry } from "../history.ts";
import { TIGHT_LIMIT } from "../tenants.ts";
import type { Facts, Violation } from "./facts.ts";
import { isDuring } from "./lost-commits.ts";

const RULE = "4 exactly min(limit, arrived)";
const MINUTE_MS = 60_000;
/** PostgreSQL writes asynchronous commits to disk after at most three times its 200 ms delay. */
const FORGOTTEN_MS = 700;

export type Exactness = {
  /** Windows in which more calls arrived than the limit allows, and how many of them were decided exactly. */
  readonly full: number;
  readonly exact: number;
};

type Minute = {
  /** Calls that were certainly admitted in this minute, and calls that may have been. */
  certain: number;
  possible: number;
  /** Calls that were certainly refused with 429 in this minute. */
  refused: number;
  /** Calls admitted shortly before the database was killed, whose counts may be lost. */
  forgotten: number;
};

/**
 * Invariant 4, for the key that gets far more calls than its limit. The database uses its own clock, which is
 * the clock of this machine: a call that began and ended in one minute was decided in that minute.
 */
export function checkAdmissions(facts: Facts): { violations: Violation[]; exactness: Exactness } {
  const minutes = new Map<number, Minute>();
  const at = (minute: number) => {
    const known = minutes.get(minute) ?? { certain: 0, possible: 0, refused: 0, forgotten: 0 };
    minutes.set(minute, known);
    return known;
  };
  for (const entry of facts.entries) {
    if (entry.key !== "tight" || entry.ending === "unreached") continue;
    const [first, last] = [minuteOf(entry.sentAt), minuteOf(entry.endedAt)];
    const outcome = outcomeOf(entry);
    if (outcome === "refused") {
      if (first === last) at(first).refused++;
      continue;
    }
    if (outcome === "admitted" && first === last) {
      at(first).certain++;
      const isForgotten = facts.databaseKills.some((kill) => entry.endedAt > kill - FORGOTTEN_MS && entry.sentAt < kill);
      if (isForgotten || isDuring(entry, facts.lostCommits)) {
        at(first).forgotten++;
      }
    }
    for (let minute = first; minute <= last; minute++) at(minute).possible++;
  }
  const violations: Violation[] = [];
  let [full, exact] = [0, 0];
  for (const { certain, possible, refused, forgotten } of minutes.values()) {
    if (certain > TIGHT_LIMIT + forgotten) {
      violations.push({ rule: RULE, text: `${certain} calls were admitted, the limit is ${TIGHT_LIMIT}` });
    }
    if (refused === 0) continue;
    full++;
    if (certain === TIGHT_LIMIT) exact++;
    if (possible < TIGHT_LIMIT && !facts.hasClockSteps) {
      violations.push({ rule: RULE, text: `429 although at most ${possible} of ${TIGHT_LIMIT} calls were admitted` });
    }
  }
  return { violations, exactness: { full, exact } };
}

function outcomeOf(entry: Entry): "admitted" | "refused" | "unknown" {
  if (entry.ending !== "answered" || entry.status >= 500) return "unknown";
  return entry.status === 429 ? "refused" : "admitted";
}

function minuteOf(at: number): number {
  return Math.floor((performance.timeOrigin + at) / MINUTE_MS);
}
