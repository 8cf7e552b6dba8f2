import { reratingReason } from "../client.ts";
import { type Entry, isRefusal, isReply } from "../history.ts";
import { chargeAt, type PriceSet, RERATINGS } from "../prices.ts";
import { describe, type Facts, groupBy, type Row, type Violation } from "./facts.ts";
import { isDuring } from "./lost-commits.ts";

const RULE = "corrections give back at most the charge, each once";

type Charged = { readonly net: bigint; readonly refunded: bigint };

/**
 * Refunds and re-ratings of generations, from the ledger alone: each is made once, a re-rating corrects by exactly the difference to its
 * prices, refunds are kept, and what is left of a charge is never below zero. What was confirmed exists.
 */
export function checkCorrections(facts: Facts): Violation[] {
  const violations: Violation[] = [];
  const fault = (text: string) => violations.push({ rule: RULE, text });
  const corrections = groupBy(
    facts.rows.filter(({ adjustedId }) => adjustedId !== ""),
    ({ adjustedId }) => adjustedId,
  );
  for (const row of facts.rows.filter(({ kind }) => kind === "generation"))
    checkRow(facts, row, corrections.get(row.id) ?? [], fault);
  checkRefunds(facts, fault);
  for (const row of facts.rows)
    if (row.balanceAfterMicros < 0n) fault(`the balance after row ${row.id} is ${row.balanceAfterMicros}`);
  return violations;
}

function checkRow(facts: Facts, row: Row, corrections: readonly Row[], fault: (text: string) => void): void {
  let charged: Charged = { net: -row.amountMicros, refunded: 0n };
  const states = [charged];
  for (const { id, amountMicros, reason } of corrections) {
    const number = RERATINGS.findIndex((_, i) => reratingReason(i) === reason);
    const prices = RERATINGS[number];
    if (prices) {
      const difference = differenceOf(row, prices, charged);
      if (amountMicros !== difference || row.hasOwnPrices)
        fault(`${reason} corrects row ${row.id} by ${amountMicros}, the difference is ${difference}`);
      charged = { ...charged, net: charged.net - amountMicros };
    } else {
      if (amountMicros <= 0n || amountMicros > charged.net)
        fault(`the refund ${id} gives back ${amountMicros} of ${charged.net} that are left of row ${row.id}`);
      charged = { net: charged.net - amountMicros, refunded: charged.refunded + amountMicros };
    }
    if (charged.net < 0n) fault(`after ${id}, ${charged.net} is left of the charge of row ${row.id}`);
    states.push(charged);
  }
  for (const [reason, rows] of groupBy(corrections, ({ reason }) => reason))
    if (rows.length > 1) fault(`${reason} corrects row ${row.id} ${rows.length} times`);
  for (const [number, prices] of RERATINGS.entries()) {
    const isDone = corrections.some(({ reason }) => reason === reratingReason(number));
    if (isDone || row.hasOwnPrices || !isToCorrect(facts, row, number)) continue;
    if (!states.some((state) => differenceOf(row, prices, state) === 0n))
      fault(`${reratingReason(number)} did not correct row ${row.id}`);
  }
}

function differenceOf(row: Row, prices: PriceSet, { net, refunded }: Charged): bigint {
  const { discount, inputTokens, outputTokens } = row;
  const charge = chargeAt(prices, discount === null ? {} : { discount }, inputTokens, outputTokens);
  const rest = charge - refunded;
  return net - (rest > 0n ? rest : 0n);
}

/** Whether a re-rating that ended certainly saw the charge. The balance of other accounts may not cover what they owe. */
function isToCorrect(facts: Facts, row: Row, number: number): boolean {
  const { tenants, lostCommits, splitBrain, hasClockSteps } = facts;
  if (row.accountId !== tenants.keys.get("rich4")?.accountId || row.priceVersion === 0) return false;
  if (lostCommits || splitBrain || hasClockSteps) return false;
  const reply = facts.entries.find(({ requestId }) => requestId === row.requestId);
  if (!reply?.model || !isReply(reply)) return false;
  return facts.entries.some(
    ({ kind, rerating, ending, isDone, sentAt }) =>
      kind === "rerate" && rerating === number && ending === "answered" && isDone && sentAt > reply.endedAt,
  );
}

/** A key refunds once if that was confirmed, and not if it was refused. Its amount is the one that was confirmed. */
function checkRefunds(facts: Facts, fault: (text: string) => void): void {
  const rows = groupBy(facts.rows, ({ reason }) => reason);
  const refunds = facts.entries.filter(({ kind }) => kind === "refund_entry");
  for (const [key = "", tries] of groupBy(refunds, ({ idempotencyKey }) => idempotencyKey)) {
    const made = rows.get(key) ?? [];
    const [first] = tries as [Entry];
    const confirmed = tries.filter(({ ending, status }) => ending === "answered" && status === 200);
    const isLost = tries.some((entry) => isDuring(entry, facts.lostCommits));
    if (made.length > 1 || (confirmed.length > 0 && made.length !== 1 && !isLost) || (tries.every(isRefusal) && made.length > 0))
      fault(`${made.length} entries of ${key}: ${describe(first)}`);
    const possible = confirmed.length > 0 && !isLost ? confirmed : tries;
    const isPossible = ({ amountMicros }: Row) =>
      possible.some(({ micros }) => micros === 0 || amountMicros === BigInt(micros ?? 0));
    if (!made.every(isPossible) || (!isLost && new Set(confirmed.map(({ micros }) => micros)).size > 1))
      fault(`${key} gives back another amount than it confirmed: ${describe(first)}`);
  }
}
