import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { setAccountSuspended } from "../../src/accounts/store.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import {
  applyPayment,
  createTopUp,
  getTopUp,
  type SeenPayment,
  setTopUpPage,
  type TopUpRow,
  topUpsToPoll,
} from "../../src/payments/store.ts";
import { expectFewPages, pagesRead } from "../database/pages-read.ts";
import { TEST_ACTION } from "../support/action.ts";
import { createTestDatabase } from "../support/database.ts";
import {
  charge,
  createPayer,
  credit,
  endOf,
  entriesOf,
  holdOf,
  moneyOf,
  moneyProblems,
  move,
  newGenerationId,
  type Payer,
  placeHold,
} from "../support/payer.ts";
import { runs } from "../support/runs.ts";
import { createTestBilling, useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useOwnStore();

const AMOUNT = 10_000_000n;

const WANTED = { amountMicros: AMOUNT, returnUrl: "https://app.example/", idempotencyKey: undefined, action: TEST_ACTION };

async function newTopUp({ accountId }: Payer, amountMicros = AMOUNT): Promise<TopUpRow> {
  const id = typeIds.topUp(laneOfId(accountId));
  await createTopUp(store.database, { ...WANTED, id, accountId, amountMicros });
  return await setTopUpPage(store.database, id, { id: `cs_${id}`, url: "https://pay.example/" });
}

function paidOf(topUp: TopUpRow, changes: Partial<SeenPayment> = {}): SeenPayment {
  const none = { refundedMicros: 0n, disputedMicros: 0n, receiptUrl: "https://pay.example/receipt", invoiceUrl: "", failure: "" };
  return {
    ...none,
    status: "paid",
    pageId: topUp.page_id ?? undefined,
    paymentId: `pi_${topUp.id}`,
    accountId: topUp.account_id,
    currency: "usd",
    amountMicros: topUp.amount_micros,
    ...changes,
  };
}

/** Applies a state that was read after all others. */
async function see(topUp: TopUpRow, changes: Partial<SeenPayment> = {}) {
  const { version } = await getTopUp(store.database, topUp.account_id, topUp.id);
  return await applyPayment(store.database, topUp.id, version, paidOf(topUp, changes));
}

/** An account with a top-up that was paid, and nothing else. */
async function paid() {
  const { payer, topUp } = await pending();
  await see(topUp);
  return { payer, topUp };
}

async function pending() {
  const payer = await createPayer(store.database, 0n);
  return { payer, topUp: await newTopUp(payer) };
}

async function stateOf({ account_id, id }: TopUpRow) {
  const { state, refunded_micros, disputed_micros, problem } = await getTopUp(store.database, account_id, id);
  return { state, refunded: refunded_micros, disputed: disputed_micros, problem };
}

async function eventsOf({ accountId }: Payer): Promise<string[]> {
  const rows = await store.owner<{ type: string }[]>`
    SELECT type FROM vx.events WHERE account_id = ${accountId} AND type LIKE 'topup.%' ORDER BY seq`;
  return rows.map(({ type }) => type);
}

test("one of many servers that read a payment at the same time credits it, the others read it again", async () => {
  const { payer, topUp } = await pending();
  const all = await Promise.all(
    Array.from({ length: 16 }, () => applyPayment(store.database, topUp.id, topUp.version, paidOf(topUp))),
  );
  expect(all.filter(({ outcome }) => outcome === "applied")).toHaveLength(1);
  expect(all.filter(({ outcome }) => outcome === "stale")).toHaveLength(15);
  await see(topUp);
  expect(await entriesOf(store, payer)).toEqual([["topup", 10_000_000]]);
  expect(await eventsOf(payer)).toEqual(["topup.paid"]);
});

test("a state that was read before another one was applied does not undo it", async () => {
  const { payer, topUp } = await paid();
  const { version } = await getTopUp(store.database, payer.accountId, topUp.id);
  await see(topUp, { refundedMicros: AMOUNT });
  const late = await applyPayment(store.database, topUp.id, version, paidOf(topUp));
  expect(late.outcome).toBe("stale");
  expect(await moneyOf(store, payer)).toEqual({ balance: 0, held: 0, owed: 0 });
});

test.each([
  ["account", { accountId: "acct_01kam4xxa5fzsbw0pdmm2h60vq" }],
  ["page", { pageId: "cs_other" }],
  ["currency", { currency: "jpy" }],
  ["amount", { amountMicros: AMOUNT + 10_000n }],
  ["amount", { amountMicros: AMOUNT - 10_000n }],
])("a payment with another %s is not credited and is told to operators once", async (alert, changes) => {
  const { payer, topUp } = await pending();
  expect(await see(topUp, changes)).toMatchObject({ outcome: "applied", alert });
  expect(await see(topUp, changes)).toMatchObject({ outcome: "applied", alert: "" });
  expect(await stateOf(topUp)).toMatchObject({ state: "pending", problem: alert });
  expect(await entriesOf(store, payer)).toEqual([]);
  // The right payment still counts.
  await see(topUp);
  expect(await stateOf(topUp)).toMatchObject({ state: "paid", problem: "" });
});

test("a second payment for the same top-up is not credited", async () => {
  const { payer, topUp } = await paid();
  expect(await see(topUp, { paymentId: "pi_other" })).toMatchObject({ alert: "payment" });
  expect(await entriesOf(store, payer)).toEqual([["topup", 10_000_000]]);
});

test("a payment that an operator credited with its id is not credited again", async () => {
  const { payer, topUp } = await pending();
  await move(store.database, payer.accountId, AMOUNT, { idempotencyKey: `pi_${topUp.id}` });
  await see(topUp);
  expect(await stateOf(topUp)).toMatchObject({ state: "paid" });
  expect(await entriesOf(store, payer)).toEqual([["credit", 10_000_000]]);
});

test.each(["failed", "expired"] as const)(
  "a payment that arrives after its top-up %s is credited and told to operators",
  async (status) => {
    const { payer, topUp } = await pending();
    await see(topUp, { status, paymentId: undefined });
    expect(await stateOf(topUp)).toMatchObject({ state: status });
    // An older state of a paid top-up changes nothing either.
    expect(await see(topUp)).toMatchObject({ alert: "late" });
    await see(topUp, { status, paymentId: undefined });
    expect(await stateOf(topUp)).toMatchObject({ state: "paid" });
    expect(await eventsOf(payer)).toEqual([`topup.${status}`, "topup.paid"]);
  },
);

test("a payment into a suspended account is credited and told to operators", async () => {
  const { payer, topUp } = await pending();
  await setAccountSuspended(store.database, TEST_ACTION, payer.accountId, true);
  expect(await see(topUp)).toMatchObject({ outcome: "applied", alert: "suspended" });
  expect(await entriesOf(store, payer)).toEqual([["topup", 10_000_000]]);
});

test("a refund takes what is free; calls are refused until released holds and credits paid the rest", async () => {
  const payer = await createPayer(store.database, 0n);
  const billing = createTestBilling(store.database);
  const topUp = await newTopUp(payer);
  await see(topUp);
  await charge(billing, payer, 3_000_000n);
  const open = await placeHold(billing, payer, 2_000_000n);
  await see(topUp, { refundedMicros: AMOUNT });
  expect(await moneyOf(store, payer)).toEqual({ balance: 2_000_000, held: 2_000_000, owed: 5_000_000 });
  expect(await stateOf(topUp)).toMatchObject({ state: "refunded" });
  const refused = await billing.hold(holdOf(payer, 1n));
  expect(refused).toMatchObject({ outcome: "owing", owedMicros: 5_000_000n });
  expect(await billing.quoteHold(holdOf(payer, 1n))).toMatchObject({ outcome: "owing" });
  // The running call used half of its hold: the other half pays a part.
  await billing.end(endOf(payer, open, 1_000_000n));
  expect(await moneyOf(store, payer)).toEqual({ balance: 0, held: 0, owed: 4_000_000 });
  await credit(store.database, payer.accountId, 1_500_000n);
  expect(await moneyOf(store, payer)).toEqual({ balance: 0, held: 0, owed: 2_500_000 });
  await credit(store.database, payer.accountId, 4_000_000n);
  expect(await moneyOf(store, payer)).toEqual({ balance: 1_500_000, held: 0, owed: 0 });
  expect(await entriesOf(store, payer)).toEqual([
    ["topup", 10_000_000],
    ["generation", -3_000_000],
    ["refund", -5_000_000],
    ["generation", -1_000_000],
    ["refund", -1_000_000],
    ["credit", 1_500_000],
    ["refund", -1_500_000],
    ["credit", 4_000_000],
    ["refund", -2_500_000],
  ]);
  expect((await billing.hold(holdOf(payer, 1n))).outcome).toBe("held");
});

test("what an abandoned hold releases pays what is owed", async () => {
  const { payer, topUp } = await paid();
  const billing = createTestBilling(store.database, { serverId: "gone" });
  await placeHold(billing, payer, AMOUNT);
  await see(topUp, { refundedMicros: 4_000_000n });
  expect(await stateOf(topUp)).toMatchObject({ state: "paid", refunded: 4_000_000n });
  await store.owner`DELETE FROM vx.servers WHERE id = 'gone'`;
  await store.database.call("sweep", laneOfId(payer.accountId));
  expect(await moneyOf(store, payer)).toEqual({ balance: 6_000_000, held: 0, owed: 0 });
});

test("all debits of a payment together never exceed it, and a dispute that is won credits back", async () => {
  const payer = await createPayer(store.database, 5_000_000n);
  const topUp = await newTopUp(payer);
  await see(topUp);
  await see(topUp, { refundedMicros: 4_000_000n });
  await see(topUp, { refundedMicros: 4_000_000n, disputedMicros: AMOUNT });
  expect(await stateOf(topUp)).toMatchObject({ state: "disputed" });
  expect(await moneyOf(store, payer)).toMatchObject({ balance: 5_000_000, owed: 0 });
  await see(topUp, { refundedMicros: 4_000_000n });
  expect(await stateOf(topUp)).toMatchObject({ state: "paid", refunded: 4_000_000n });
  expect(await moneyOf(store, payer)).toMatchObject({ balance: 11_000_000, owed: 0 });
  expect(await eventsOf(payer)).toEqual(["topup.paid", "topup.refunded", "topup.disputed", "topup.disputed"]);
});

test("a payment that is already refunded when it is first read is credited and taken back", async () => {
  const { payer, topUp } = await pending();
  await see(topUp, { refundedMicros: AMOUNT });
  expect(await entriesOf(store, payer)).toEqual([
    ["topup", 10_000_000],
    ["refund", -10_000_000],
  ]);
  expect(await eventsOf(payer)).toEqual(["topup.paid", "topup.refunded"]);
});

test("an idempotency key creates one top-up, and refuses another amount", async () => {
  const { accountId } = await createPayer(store.database, 0n);
  const create = (amountMicros: bigint) => {
    const id = typeIds.topUp(laneOfId(accountId));
    return createTopUp(store.database, { ...WANTED, id, accountId, amountMicros, idempotencyKey: "order 1" });
  };
  const all = await Promise.all(Array.from({ length: 8 }, () => create(AMOUNT)));
  expect(new Set(all.map(({ id }) => id)).size).toBe(1);
  await expect(create(AMOUNT + 10_000n)).rejects.toMatchObject({ reason: "idempotency_key_reused" });
});

test("an account has at most 20 pending top-ups", async () => {
  const payer = await createPayer(store.database, 0n);
  const first = await newTopUp(payer);
  await store.owner`
    INSERT INTO vx.topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at)
    SELECT lane, id || i, account_id, state, amount_micros, currency, return_url, created_at
    FROM vx.topups, generate_series(1, 18) i WHERE id = ${first.id}`;
  await newTopUp(payer);
  await expect(newTopUp(payer)).rejects.toMatchObject({ reason: "topup_limit_reached" });
  await see(first);
  await newTopUp(payer);
});

test("a pending top-up is polled by one server at a time, less and less often, until it is paid", async () => {
  const topUp = await newTopUp(await createPayer(store.database, 0n));
  const due = async () => {
    const all = await Promise.all([1, 2, 3].map(() => topUpsToPoll(store.database, 100)));
    return all.flat().filter((id) => id === topUp.id).length;
  };
  const age = (text: string) => store.owner`
    UPDATE vx.topups SET created_at = created_at - ${text}::interval, next_poll_at = next_poll_at - ${text}::interval
    WHERE id = ${topUp.id}`;
  expect(await due()).toBe(0);
  await age("1 minute");
  expect([await due(), await due()]).toEqual([1, 0]);
  await age("30 minutes");
  expect(await due()).toBe(1);
  await age("29 minutes");
  expect(await due()).toBe(0);
  await see(topUp);
  await age("2 hours");
  expect(await due()).toBe(0);
});

const micros = fc.bigInt({ min: 0n, max: 12n }).map((units) => units * 1_000_000n);
const atLeastOne = micros.map((amount) => amount + 1n);
const step = fc.oneof(
  fc.record({ do: fc.constant("see" as const), refunded: micros, disputed: micros }),
  fc.record({ do: fc.constant("hold" as const), micros: atLeastOne }),
  fc.record({ do: fc.constant("credit" as const), micros: atLeastOne }),
  fc.record({ do: fc.constant("end" as const), share: fc.bigInt({ min: 0n, max: 4n }) }),
);

test("whatever happens in whatever order, a payment is credited once and taken back at most once", async () => {
  const billing = createTestBilling(store.database);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { payer, topUp } = await pending();
      const open: { id: string; amount: bigint }[] = [];
      let reversed = 0n;
      await see(topUp);
      for (const one of steps) {
        if (one.do === "see") {
          const [refundedMicros, disputedMicros] = [one.refunded, one.disputed];
          await see(topUp, { refundedMicros, disputedMicros });
          const sum = refundedMicros + disputedMicros;
          reversed = sum < AMOUNT ? sum : AMOUNT;
        } else if (one.do === "credit") await credit(store.database, payer.accountId, one.micros);
        else if (one.do === "hold") {
          const id = newGenerationId(payer);
          const { outcome } = await billing.hold(holdOf(payer, one.micros, id));
          if (outcome === "held") open.push({ id, amount: one.micros });
        } else {
          const held = open.shift();
          if (held) await billing.end(endOf(payer, held.id, (held.amount * one.share) / 4n));
        }
        const { balance, held, owed } = (await moneyOf(store, payer)) ?? { balance: 0, held: 0, owed: 0 };
        // Only what running calls hold can be missing.
        expect(owed === 0 || balance === held).toBe(true);
        const rows = await entriesOf(store, payer);
        const sumOf = (kind: string) => rows.reduce((sum, [of, amount]) => (of === kind ? sum + amount : sum), 0);
        expect(sumOf("topup")).toBe(Number(AMOUNT));
        expect(sumOf("refund")).toBe(owed - Number(reversed));
      }
      for (const { id } of open) await billing.end(endOf(payer, id, undefined));
    }),
    { numRuns: runs(10) },
  );
  expect(await moneyProblems(store)).toEqual([]);
});

test("lists of the top-ups of all accounts read few pages, whatever the state and the number of top-ups", async () => {
  /** With the numbers of rows. */
  const calls = {
    "list_topups(NULL, NULL, '', false, '', 26)": 26,
    "list_topups(NULL, NULL, 'paid', false, 'top_5', 26)": 26,
    "list_topups(NULL, NULL, 'disputed', false, '', 26)": 2,
    "list_topups(NULL, NULL, '', true, '', 26)": 1,
  };
  // PostgreSQL plans with statistics, which the rows of other tests would change.
  const { owner, drop } = await createTestDatabase();
  onTestFinished(drop);
  await owner.begin(async (session) => {
    // While there are few, a plan for all values would be good enough. From the sixth call on, PostgreSQL may use one.
    for (let i = 0; i < 6; i++) for (const call of Object.keys(calls)) await pagesRead(session, call);
    await session`INSERT INTO vx.accounts (lane, id, name, plan, created_at) VALUES (1, 'acct_1', 'test', 'free', now())`;
    await session`
      INSERT INTO vx.topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at, problem)
      SELECT 1, 'top_' || n, 'acct_1', (CASE WHEN n < 10002 THEN 'disputed' ELSE 'paid' END)::vx.topup_state, 1, 'usd', '', now(),
        CASE WHEN n = 10004 THEN 'amount' ELSE '' END
      FROM generate_series(10000, 30000) n`;
    await expectFewPages(session, calls, "topups");
  });
});
