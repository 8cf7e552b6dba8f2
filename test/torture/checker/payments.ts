import type postgres from "postgres";
import type { Arena } from "../arena.ts";
import type { Episode } from "../episode.ts";
import { MICROS_PER_CENT } from "../payments.ts";
import { groupBy, ofCells, type Violation } from "./facts.ts";

const RULE = "15 a payment is credited exactly once";

type Entry = { readonly accountId: string; readonly kind: string; readonly micros: bigint; readonly reason: string };
type Owing = { readonly id: string; readonly owed: bigint };

/** How many payments were checked, and how many of them were reversed. */
export type Payments = { readonly made: number; readonly reversed: number };

/**
 * Invariant 15, for each payment that Stripe has: one entry credits its amount to the account that ordered it. What Stripe gave back or
 * disputes withdrew is debited from the account or owed by it, and for no payment more than its amount.
 */
export async function checkPayments(
  arena: Arena,
  episodes: readonly Episode[],
): Promise<{ violations: Violation[]; payments: Payments }> {
  const violations: Violation[] = [];
  const fault = (text: string) => violations.push({ rule: RULE, text });
  const losesCommits = episodes.some(({ lostCommits, splitBrain }) => lostCommits || splitBrain);
  const orders = new Map<string, string>();
  for (const { accountId, topUpIds } of episodes.flatMap(({ purchases }) => purchases)) {
    for (const id of topUpIds) orders.set(id, accountId);
    if (topUpIds.size > 1 && !losesCommits) fault(`one order has ${[...topUpIds].join(" and ")}`);
  }
  const entries = groupBy(await ofCells(arena.owners, listEntries), ({ reason }) => reason);
  const known = new Set((await ofCells(arena.owners, listTopUps)).map(({ id }) => id));
  const payments = arena.stripe.payments().filter(({ topUpId }) => {
    if (!known.has(topUpId) && !losesCommits) fault(`the paid top-up ${topUpId} does not exist`);
    return known.has(topUpId);
  });
  const sum = (of: readonly Entry[]) => of.reduce((total, { micros }) => total + micros, 0n);
  for (const { topUpId, accountId, received } of payments) {
    const paid = BigInt(received) * MICROS_PER_CENT;
    const ordered = orders.get(topUpId) ?? accountId;
    const credits = entries.get(`Top-up ${topUpId}`) ?? [];
    const [first] = credits;
    if (credits.length !== 1 || first?.micros !== paid || first.accountId !== ordered)
      fault(`${topUpId} of ${ordered} was paid with ${paid}, credited: ${textOf(credits)}`);
    const debits = entries.get(`Reversal of top-up ${topUpId}`) ?? [];
    const returned = entries.get(`End of the reversal of top-up ${topUpId}`) ?? [];
    if (-sum(debits) - sum(returned) > paid) fault(`more than ${paid} of ${topUpId} is debited: ${textOf(debits)}`);
  }
  const paidIds = new Set(payments.map(({ topUpId }) => `Top-up ${topUpId}`));
  for (const [reason, of] of entries)
    if (of.some(({ kind }) => kind === "topup") && !paidIds.has(reason)) fault(`credited without a payment: ${textOf(of)}`);
  for (const [topUpId, times] of arena.stripe.charges) if (times > 1) fault(`the card paid ${times} times for ${topUpId}`);
  const refunds = groupBy(
    [...entries.values()].flat().filter(({ kind }) => kind === "refund"),
    ({ accountId }) => accountId,
  );
  const reversed = groupBy(payments, ({ topUpId, accountId }) => orders.get(topUpId) ?? accountId);
  for (const { id, owed } of await ofCells(arena.owners, listOwed)) {
    const cents = (reversed.get(id) ?? []).reduce(
      (total, { received, refunded, disputed }) => total + Math.min(received, refunded + disputed),
      0,
    );
    const debited = -sum(refunds.get(id) ?? []);
    if (debited + owed !== BigInt(cents) * MICROS_PER_CENT)
      fault(`${cents} cents of the payments of ${id} are reversed, ${debited} micros debited and ${owed} owed`);
  }
  const isReversed = ({ refunded, disputed }: (typeof payments)[number]) => refunded + disputed > 0;
  return { violations, payments: { made: payments.length, reversed: payments.filter(isReversed).length } };
}

function listEntries(owner: postgres.Sql): Promise<Entry[]> {
  return owner<Entry[]>`
    SELECT account_id AS "accountId", kind, amount_micros AS micros, reason FROM ledger WHERE kind IN ('topup', 'refund')`;
}

function listTopUps(owner: postgres.Sql): Promise<{ id: string }[]> {
  return owner`SELECT id FROM topups`;
}

function listOwed(owner: postgres.Sql): Promise<Owing[]> {
  return owner<Owing[]>`SELECT id, owed_micros AS owed FROM accounts`;
}

function textOf(entries: readonly Entry[]): string {
  return entries.map(({ accountId, micros }) => `${micros} of ${accountId}`).join(", ") || "nothing";
}
