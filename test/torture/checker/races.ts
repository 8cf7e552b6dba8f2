import { isReply } from "../history.ts";
import { FUNDED_CALLS, KEY_CAP } from "../tenants.ts";
import type { Facts, Violation } from "./facts.ts";

export type Races = { readonly funded: number; readonly keys: number };

/**
 * Invariants 3 and 7: of concurrent callers that want a limited resource, exactly as many succeed as it
 * allows.
 */
export function checkRaces(facts: Facts): { violations: Violation[]; figures: Races } {
  const violations: Violation[] = [];
  const fault = (rule: string, text: string) => violations.push({ rule, text });
  const funded = facts.entries.filter((entry) => entry.race === "funds" && isReply(entry)).length;
  const rows = facts.rows.filter(
    ({ accountId, kind }) => accountId === facts.tenants.keys.get("poor")?.accountId && kind === "generation",
  );
  // A call that was cut is charged less than its hold, so others may follow; together they never exceed the
  // funds.
  const charged = rows.reduce((sum, { amountMicros }) => sum - amountMicros, 0n);
  if (charged > facts.fundedMicros || (facts.isCalm && (funded !== FUNDED_CALLS || rows.length !== funded))) {
    fault("3 funds for K, exactly K", `${funded} replies, ${rows.length} rows, ${charged} of ${facts.fundedMicros} micros`);
  }
  const made = facts.entries.filter((entry) => entry.race === "cap" && entry.status === 200).length;
  const { activeKeys } = facts;
  // One key existed before.
  if (activeKeys > KEY_CAP || made > KEY_CAP - 1 || (facts.isCalm && made !== KEY_CAP - 1)) {
    fault("7 active keys ≤ cap", `${made} additional keys created, ${activeKeys} active, limit ${KEY_CAP}`);
  }
  return { violations, figures: { funded, keys: activeKeys } };
}
