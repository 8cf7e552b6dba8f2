import { type Entry, isRefusal } from "../history.ts";
import { chargeAt, type PriceSet, type Terms } from "../prices.ts";
import type { Facts, Row } from "./facts.ts";

/** The time in which each server has read a changed file, without faults. */
const RELOADED_MS = 15_000;

/**
 * What the call may have been charged: at the prices that a server may have had, with what its account may have had in their place. Both
 * are known from when they were changed.
 */
export function possibleCharges(facts: Facts, row: Row, entry: Entry): bigint[] {
  return pricesDuring(facts, entry).flatMap((prices) =>
    termsDuring(facts, entry).map((terms) => chargeAt(prices, terms, row.inputTokens, row.outputTokens)),
  );
}

function pricesDuring({ prices, isCalm }: Facts, entry: Entry): PriceSet[] {
  return prices
    .filter(({ at }, i) => {
      const replacedAt = prices[i + 1]?.at ?? Number.POSITIVE_INFINITY;
      return at <= possibleUntil(entry) && (!isCalm || replacedAt + RELOADED_MS > entry.sentAt);
    })
    .map(({ prices: set }) => set);
}

/** A call with an idempotency key whose caller leaves continues, and can wait for its hold, which decides the prices. */
function possibleUntil({ ending, idempotencyKey, endedAt }: Entry): number {
  return ending === "left" && idempotencyKey !== undefined ? Number.POSITIVE_INFINITY : endedAt;
}

/** The terms of the last change that was certainly made before the call, and of each that may have been made since. */
function termsDuring(facts: Facts, entry: Entry): Terms[] {
  const accountOf = ({ key }: Entry) => facts.tenants.keys.get(key)?.accountId;
  const changes = facts.entries.filter(
    (change) =>
      change.kind === "set_prices" &&
      accountOf(change) === accountOf(entry) &&
      change.sentAt < possibleUntil(entry) &&
      !isRefusal(change),
  );
  const isCertain = ({ ending, status }: Entry) => ending === "answered" && status === 200;
  const before = changes.filter((change) => isCertain(change) && change.endedAt < entry.sentAt);
  const last = Math.max(...before.map(({ sentAt }) => sentAt));
  const isForgotten = facts.lostCommits !== undefined || facts.splitBrain !== undefined;
  const possible = changes.filter((change) => isForgotten || !isCertain(change) || change.endedAt >= last);
  const first = before.length === 0 || isForgotten ? [{}] : [];
  return [...first, ...possible.map(({ terms = {} }) => terms)];
}
