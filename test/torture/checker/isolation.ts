import { type Entry, isUnplannedFailure } from "../history.ts";
import { describe, type Facts, type Violation } from "./facts.ts";

const RULE = "12 failures of one account affect no other";

/**
 * The upstream succeeds for every prompt without a planned failure, so such a failure is caused by other
 * calls.
 */
export function isFailureOfOthers(entry: Entry): boolean {
  return isUnplannedFailure(entry) && (entry.code === "upstream_error" || entry.code === "overloaded");
}

/** Invariant 12, for episodes without faults other than the requests of one account. */
export function checkIsolation(facts: Facts): Violation[] {
  if (!facts.isCalm) return [];
  return facts.entries
    .filter(isFailureOfOthers)
    .map((entry) => ({ rule: RULE, text: `failed because of other calls: ${describe(entry)}` }));
}
