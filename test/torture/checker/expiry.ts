import { describe, type Facts, type Violation } from "./facts.ts";

const RULE = "expired credit is not spent";
/** Between the clock of the history and that of the database. */
const CLOCK_MS = 50;

/** Some accounts have nothing but credit that expires: no call that begins later is charged. */
export function checkExpiry(facts: Facts): Violation[] {
  const { tenants, entries, rowsByRequest, hasClockSteps } = facts;
  if (hasClockSteps) return [];
  return entries
    .filter(({ key, sentAt }) => sentAt > (tenants.expiries.get(key) ?? Number.POSITIVE_INFINITY) + CLOCK_MS)
    .filter(({ requestId }) => rowsByRequest.has(requestId))
    .map((entry) => ({ rule: RULE, text: `charged after the expiry: ${describe(entry)}` }));
}
