import { isGeneration, isReply } from "../history.ts";
import { describe, type Facts, groupBy, type Violation } from "./facts.ts";

const RULE = "6 one idempotency key, one charge";

/** Invariant 6: calls with the same idempotency key are charged once and get the same answer. */
export function checkRepeats(facts: Facts): Violation[] {
  const violations: Violation[] = [];
  const fault = (text: string) => violations.push({ rule: RULE, text });
  const asked = facts.entries.filter((entry) => isGeneration(entry) && entry.idempotencyKey !== undefined);
  for (const [op, tries] of groupBy(asked, (entry) => entry.op)) {
    const rows = tries.flatMap((entry) => facts.rowsByRequest.get(entry.requestId) ?? []);
    const replies = tries.filter(isReply);
    if (rows.length > 1) fault(`${rows.length} rows for op ${op}, sent ${tries.length} times`);
    const [first] = replies;
    if (!first) continue;
    if (rows.length !== 1) fault(`${rows.length} rows for a reply: ${describe(first)}`);
    for (const reply of replies) {
      const isSame = reply.id === first.id && reply.content === first.content && reply.costMicros === first.costMicros;
      if (!isSame) fault(`op ${op} has the replies ${first.id} and ${reply.id}: ${describe(reply)}`);
    }
    const whole = (facts.executions.get(op) ?? []).filter(({ ended }) => ended === "whole");
    if (facts.isCalm && whole.length !== 1) {
      fault(`op ${op} was executed ${whole.length} times: ${tries.map(describe).join("; ")}`);
    }
  }
  checkCredits(facts, fault);
  return violations;
}

function checkCredits(facts: Facts, fault: (text: string) => void): void {
  const rows = groupBy(facts.rows, (row) => row.idempotencyKey);
  const credits = facts.entries.filter((entry) => entry.kind === "credit");
  for (const [key, tries] of groupBy(credits, (entry) => entry.idempotencyKey)) {
    const moved = rows.get(key ?? "")?.length ?? 0;
    const wasTold = tries.some((entry) => entry.ending === "answered" && entry.status === 200);
    if (moved > 1 || (wasTold && moved !== 1)) fault(`credit ${key} changed the balance ${moved} times`);
  }
}
