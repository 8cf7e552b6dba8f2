import { describe, type Facts, type Violation } from "./facts.ts";

const RULE = "customers do not see costs";
const OPERATORS_CALLS = ["credit", "refund_entry", "rerate", "set_prices", "set_limits"];

/** No response to a customer shows what a call costs the operator, or at which upstream. */
export function checkCosts({ entries }: Facts): Violation[] {
  return entries
    .filter(({ kind, showsCosts }) => showsCosts && !OPERATORS_CALLS.includes(kind))
    .map((entry) => ({ rule: RULE, text: `a cost is in the response of ${describe(entry)}` }));
}
