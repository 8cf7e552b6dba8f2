import { type Lane, laneOfId } from "../../../src/domain/lane.ts";
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

/** Invariant 12, for episodes without faults other than the requests of one account or the failure of one cell. */
export function checkIsolation(facts: Facts): Violation[] {
  if (facts.failedLanes) return checkOtherCells(facts, facts.failedLanes);
  if (!facts.isCalm) return [];
  return facts.entries
    .filter(isFailureOfOthers)
    .map((entry) => ({ rule: RULE, text: `failed because of other calls: ${describe(entry)}` }));
}

/** A cell that fails affects only its own accounts. */
function checkOtherCells({ entries, tenants }: Facts, failed: ReadonlySet<Lane>): Violation[] {
  const isOfOther = ({ key }: Entry) => {
    const accountId = tenants.keys.get(key)?.accountId ?? "";
    return accountId !== "" && !failed.has(laneOfId(accountId));
  };
  return entries
    .filter((entry) => isOfOther(entry) && isUnplannedFailure(entry) && entry.code !== "upstream_error")
    .map((entry) => ({ rule: RULE, text: `failed because of another cell: ${describe(entry)}` }));
}
