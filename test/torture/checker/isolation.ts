import { type Entry, isUnplannedFailure } from "../history.ts";
import { describe, type Facts, type Violation } from "./facts.ts";

const RULE = "12 one account's failures harm no other";

/** The upstream works for every prompt that is not planned to fail, so such a failure comes from other calls. */
export function isFailureOfOthers(entry: Entry): boolean {
  return isUnplannedFailure(entry) && (entry.code === "upstream_error" || entry.code === "overloaded");
}

/** Invariant 12, where nothing is broken but what one account asks for. */
export function checkIsolation(facts: Facts): Violation[] {
  if (!facts.isCalm) return [];
  return facts.entries
    .filter(isFailureOfOthers)
    .map((entry) => ({ rule: RULE, text: `failed because of other calls: ${describe(entry)}` }));
}
