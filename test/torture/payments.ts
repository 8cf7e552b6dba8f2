import { setTimeout as wait } from "node:timers/promises";
import type { Random } from "../fuzz/random.ts";
import type { StripeEvent } from "../support/fake-stripe.ts";
import type { Arena } from "./arena.ts";
import { ofCells, type Violation } from "./checker/facts.ts";
import type { Episode } from "./episode.ts";
import { CUSTOMERS, type Key, type KeyName, type Tenants } from "./tenants.ts";

type Action =
  | "pay"
  | "pay slowly"
  | "arrive"
  | "fail"
  | "expire"
  | "refund a part"
  | "refund the rest"
  | "dispute"
  | "win"
  | "lose";

/** What customers and Stripe do with a top-up. */
const COURSES: readonly (readonly Action[])[] = [
  [],
  ["pay"],
  ["pay", "refund a part"],
  ["pay", "refund a part", "refund the rest"],
  ["pay", "dispute"],
  ["pay", "dispute", "win"],
  ["pay", "dispute", "lose"],
  ["pay", "refund a part", "dispute", "win", "refund the rest"],
  ["pay slowly", "arrive", "refund the rest"],
  ["pay slowly", "fail"],
  ["expire"],
  ["expire", "pay"],
];

type Step = {
  readonly action: Action;
  readonly afterMs: number;
  /** When each event of the action is delivered, and to which server: at times several times, or not at all. */
  readonly deliveries: readonly { readonly afterMs: number; readonly server: number }[];
};

type PurchasePlan = {
  readonly customer: KeyName;
  readonly idempotencyKey: string;
  readonly atMs: number;
  readonly cents: number;
  readonly steps: readonly Step[];
};

/** A top-up that a customer ordered. */
export type Purchase = {
  readonly accountId: string;
  /** More than one is a violation: all requests have the same idempotency key. */
  readonly topUpIds: Set<string>;
  readonly events: { readonly event: StripeEvent; readonly isLost: boolean; isAccepted: boolean }[];
};

const PURCHASES_PER_SECOND = 4;
/** Of the requests to Stripe, how many fail, and how many take effect without an answer. */
const FAILURES = { refused: 0.04, lost: 0.04 };
/** Events can arrive after those of later steps. */
const MIN_STEP_MS = 150;
const MAX_DELIVERY_MS = 600;
const ORDER_TRIES = 8;
const RETRY_MS = 500;
export const MICROS_PER_CENT = 10_000n;

/** Depends only on the seed. */
export function planPurchases(random: Random, episode: number, seconds: number, servers: number): PurchasePlan[] {
  const deliver = () => ({ afterMs: random.below(MAX_DELIVERY_MS), server: random.below(servers) });
  return Array.from({ length: seconds * PURCHASES_PER_SECOND }, (_, i) => ({
    customer: random.pick(CUSTOMERS),
    idempotencyKey: `purchase-${episode}-${i}`,
    atMs: random.below(seconds * 550),
    cents: 1 + random.below(3),
    steps: random.pick(COURSES).map((action) => ({
      action,
      afterMs: MIN_STEP_MS + random.below(MAX_DELIVERY_MS),
      deliveries: Array.from({ length: random.below(4) }, deliver),
    })),
  }));
}

/** Customers order and pay top-ups while calls run, and Stripe fails at times. Resolves when all has happened. */
export async function runPurchases(
  arena: Arena,
  tenants: Tenants,
  plans: readonly PurchasePlan[],
  random: Random,
): Promise<Purchase[]> {
  const { stripe } = arena;
  stripe.before = () => (random.chance(FAILURES.refused) ? 500 : undefined);
  stripe.losesAnswer = () => random.chance(FAILURES.lost);
  try {
    return await Promise.all(plans.map((plan) => runPurchase(arena, tenants, plan)));
  } finally {
    stripe.before = () => undefined;
    stripe.losesAnswer = () => false;
  }
}

async function runPurchase(arena: Arena, { keys }: Tenants, plan: PurchasePlan): Promise<Purchase> {
  await wait(plan.atMs);
  const key = keys.get(plan.customer) as Key;
  const topUpIds = new Set<string>();
  // A customer who is impatient sends the order twice.
  await Promise.all([order(arena, key, plan, 0, topUpIds), order(arena, key, plan, 1, topUpIds)]);
  const purchase: Purchase = { accountId: key.accountId, topUpIds, events: [] };
  const [topUpId] = topUpIds;
  const delivered: Promise<void>[] = [];
  let hasExpired = false;
  for (const step of topUpId === undefined ? [] : plan.steps) {
    await wait(step.afterMs);
    for (const event of act(arena, topUpId as string, step.action, plan.cents)) {
      // Servers look up pending payments themselves, but not those that were credited, or whose page has expired: of these they find
      // lost events only every five minutes.
      const isLookedUp = ["pay", "arrive", "fail", "expire"].includes(step.action) && !hasExpired;
      const isLost = step.deliveries.length === 0 && isLookedUp;
      const record = { event, isLost, isAccepted: false };
      purchase.events.push(record);
      for (const { afterMs, server } of step.deliveries) {
        const sent = wait(afterMs).then(() => deliver(arena, server, event));
        delivered.push(
          sent.then((isAccepted) => {
            record.isAccepted ||= isAccepted;
          }),
        );
      }
    }
    hasExpired ||= step.action === "expire";
  }
  await Promise.all(delivered);
  return purchase;
}

/** Repeats the order until a server has answered it. */
async function order(
  { servers }: Arena,
  { secret }: Key,
  { idempotencyKey, cents }: PurchasePlan,
  first: number,
  topUpIds: Set<string>,
): Promise<void> {
  for (let i = 0; i < ORDER_TRIES; i++) {
    try {
      const answer = await fetch(`${servers[(first + i) % servers.length]?.url}/v1/topups`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${secret}`, "idempotency-key": idempotencyKey },
        body: JSON.stringify({ amount_micros: cents * Number(MICROS_PER_CENT) }),
        signal: AbortSignal.timeout(15_000),
      });
      const body = (await answer.json()) as { topup?: { id: string } };
      if (body.topup) {
        topUpIds.add(body.topup.id);
        return;
      }
      if (answer.status < 500) return;
    } catch {
      // The server or its database is away.
    }
    await wait(RETRY_MS);
  }
}

function act({ stripe }: Arena, topUpId: string, action: Action, cents: number): readonly StripeEvent[] {
  const part = Math.ceil(cents * 0.4);
  switch (action) {
    case "pay":
      return stripe.pay(topUpId);
    case "pay slowly":
      return stripe.pay(topUpId, {}, true);
    case "arrive":
      return [stripe.arrive(topUpId)];
    case "fail":
      return [stripe.fail(topUpId)];
    case "expire":
      return [stripe.expire(topUpId)];
    case "refund a part":
      return [stripe.refund(topUpId, part)];
    case "refund the rest": {
      const refunded = stripe.payments().find((payment) => payment.topUpId === topUpId)?.refunded ?? 0;
      return refunded === cents ? [] : [stripe.refund(topUpId, cents - refunded)];
    }
    case "dispute":
      return [stripe.dispute(topUpId, cents)];
    case "win":
      return [stripe.closeDispute(topUpId, "won")];
    case "lose":
      return [stripe.closeDispute(topUpId, "lost")];
  }
}

async function deliver({ stripe, servers }: Arena, server: number, event: StripeEvent): Promise<boolean> {
  return (await stripe.deliver(event, servers[server]?.url ?? "").catch(() => 0)) === 200;
}

/**
 * Delivers what no server has accepted, as Stripe does for days, and makes look-ups of pending payments due, until every payment is known.
 */
export async function settlePurchases(arena: Arena, episodes: readonly Episode[], patienceMs: number): Promise<Violation[]> {
  const until = performance.now() + patienceMs;
  const events = episodes.flatMap(({ purchases, lostCommits, splitBrain }) =>
    purchases.flatMap((purchase) =>
      // What a lost primary had accepted is delivered again.
      purchase.events.filter(({ isLost, isAccepted }) => lostCommits || splitBrain || !(isLost || isAccepted)),
    ),
  );
  for (const { event } of events) while (!(await deliver(arena, 0, event)) && performance.now() < until) await wait(RETRY_MS);
  const made = arena.stripe.payments().map(({ topUpId }) => topUpId);
  const open = () =>
    ofCells(
      arena.owners,
      (owner) => owner<{ id: string }[]>`
        UPDATE topups SET next_poll_at = clock_timestamp() - interval '1 second'
        WHERE state = 'pending' AND problem = '' AND (is_automatic OR id = ANY (string_to_array(${made.join()}, ','))) RETURNING id`,
    );
  let pending = await open();
  while (pending.length > 0 && performance.now() < until) {
    await wait(RETRY_MS);
    pending = await open();
  }
  return pending.map(({ id }) => ({
    rule: "15 a payment is credited exactly once",
    text: `${id} is pending after ${patienceMs} ms`,
  }));
}
