import { expect, test } from "vitest";
import { setAccountSuspended } from "../../src/accounts/store.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import {
  type AutoTopUpSettings,
  applyAutoTopUpPage,
  autoTopUpsDue,
  getAutoTopUp,
  putAutoTopUp,
  resumeAutoTopUp,
  setAutoTopUpPage,
  topUpAfterRefusal,
} from "../../src/payments/auto-top-up-store.ts";
import {
  applyPayment,
  createTopUp,
  getTopUp,
  listTopUps,
  type SeenPayment,
  setTopUpPayment,
  type TopUpRow,
  topUpCharge,
} from "../../src/payments/store.ts";
import { actionOfKey, TEST_ACTION } from "../support/action.ts";
import {
  charge,
  createPayer,
  credit,
  endOf,
  holdOf,
  moneyProblems,
  move,
  type Payer,
  payerOf,
  placeHold,
} from "../support/payer.ts";
import { createTestBilling, useStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useStore();

/** 10 dollars when the balance is below 5, at most 30 in a month. */
const SETTINGS: AutoTopUpSettings = {
  isEnabled: true,
  thresholdMicros: 5_000_000n,
  amountMicros: 10_000_000n,
  monthlyMaxMicros: 30_000_000n,
};

const put = (payer: Payer, changes: Partial<AutoTopUpSettings> = {}, action = TEST_ACTION) =>
  putAutoTopUp(store.database, action, payer.accountId, { ...SETTINGS, ...changes });
const putByKey = (payer: Payer, changes?: Partial<AutoTopUpSettings>) => put(payer, changes, actionOfKey(payer));

const settingsOf = ({ accountId }: Payer) => getAutoTopUp(store.database, accountId);

const PAGE = { id: "cs_1", url: "https://pay.example/" };

function storeCard({ accountId }: Payer, changes: Partial<Parameters<typeof applyAutoTopUpPage>[2]> = {}) {
  return applyAutoTopUpPage(store.database, accountId, {
    id: PAGE.id,
    createdAt: new Date(1_000),
    customerId: `cus_${accountId}`,
    isOver: true,
    method: { id: "pm_1", text: "visa •••• 4242" },
    ...changes,
  });
}

/** An account with automatic top-ups. */
async function createAutoPayer(balance: bigint, changes: Partial<AutoTopUpSettings> = {}): Promise<Payer> {
  const payer = await createPayer(store.database, balance);
  await put(payer, changes);
  await setAutoTopUpPage(store.database, payer.accountId, { id: `cus_${payer.accountId}` }, PAGE);
  await storeCard(payer);
  return payer;
}

async function topUpsOf({ accountId }: Payer): Promise<TopUpRow[]> {
  return (await listTopUps(store.database, accountId, { list: "topups", after: "", size: 50 })).rows;
}

const statesOf = async (payer: Payer) => (await topUpsOf(payer)).map(({ state }) => state);

async function pendingOf(payer: Payer): Promise<TopUpRow> {
  const row = (await topUpsOf(payer)).find(({ state }) => state === "pending");
  if (!row) throw new Error("no top-up is pending");
  return row;
}

const SEEN: Omit<SeenPayment, "status" | "accountId" | "failure"> = {
  pageId: undefined,
  paymentId: undefined,
  currency: "usd",
  amountMicros: 0n,
  refundedMicros: 0n,
  disputedMicros: 0n,
  receiptUrl: "",
  invoiceUrl: "",
};

/** The state of the payment of the pending top-up, as the provider shows it. */
async function see(payer: Payer, status: SeenPayment["status"], failure = "") {
  const { id } = await pendingOf(payer);
  await setTopUpPayment(store.database, id, `pi_${id}`);
  const topUp = await getTopUp(store.database, payer.accountId, id);
  return await applyPayment(store.database, id, topUp.version, {
    ...SEEN,
    status,
    paymentId: `pi_${id}`,
    accountId: payer.accountId,
    amountMicros: status === "paid" ? topUp.amount_micros : 0n,
    failure,
  });
}

async function eventsOf({ accountId }: Payer): Promise<string[]> {
  const rows = await store.owner<{ text: string }[]>`
    SELECT concat_ws(' ', type, data->>'reason', data->>'failures') AS text FROM vx.events
    WHERE account_id = ${accountId} AND type LIKE 'topup.%' ORDER BY seq`;
  return rows.map(({ text }) => text);
}

test("a charge that takes the balance below the threshold starts one top-up; after it was paid, the next charge below starts another", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createAutoPayer(7_000_000n);
  await charge(billing, payer, 2_000_000n);
  expect(await statesOf(payer)).toEqual([]);
  await charge(billing, payer, 1n);
  const [topUp] = await topUpsOf(payer);
  expect(topUp).toMatchObject({ state: "pending", is_automatic: true, amount_micros: 10_000_000n });
  await charge(billing, payer, 1n);
  expect(await statesOf(payer)).toEqual(["pending"]);
  await see(payer, "paid");
  expect(await statesOf(payer)).toEqual(["paid"]);
  await charge(billing, payer, 10_000_000n);
  expect(await statesOf(payer)).toEqual(["pending", "paid"]);
  expect(await eventsOf(payer)).toEqual(["topup.paid"]);
});

test("a payment of the customer that is pending keeps none from starting", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 5_000_000n);
  const { accountId } = payer;
  const order = { id: typeIds.topUp(laneOfId(accountId)), accountId, amountMicros: 10_000_000n, returnUrl: "" };
  await createTopUp(store.database, { ...order, idempotencyKey: undefined, action: TEST_ACTION });
  await put(payer);
  await setAutoTopUpPage(store.database, accountId, { id: `cus_${accountId}` }, PAGE);
  await storeCard(payer);
  await charge(billing, payer, 1n);
  expect((await topUpsOf(payer)).map((topUp) => topUp.is_automatic)).toEqual([true, false]);
});

test("many charges and refused calls at the same time start one", async () => {
  const billings = ["one", "two"].map((serverId) => createTestBilling(store.database, { serverId, pipelines: 2 }));
  const payer = await createAutoPayer(5_000_000n);
  await Promise.all(
    Array.from({ length: 24 }, (_, i) => {
      const billing = billings[i % 2] as (typeof billings)[0];
      return i % 3 === 0 ? topUpAfterRefusal(store.database, payer.accountId) : charge(billing, payer, 10_000n);
    }),
  );
  expect(await statesOf(payer)).toEqual(["pending"]);
});

test("a call that is refused while less than the threshold is free starts one; a hold that does not fit starts none", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createAutoPayer(8_000_000n);
  const tooMuch = () => billing.hold(holdOf(payer, 9_000_000n));
  const short = { outcome: "insufficient", autoTopUpBelowMicros: 5_000_000n };
  expect(await tooMuch()).toMatchObject(short);
  await topUpAfterRefusal(store.database, payer.accountId);
  expect(await statesOf(payer)).toEqual([]);
  await placeHold(billing, payer, 4_000_000n);
  expect(await tooMuch()).toMatchObject(short);
  expect(await statesOf(payer)).toEqual([]);
  await topUpAfterRefusal(store.database, payer.accountId);
  expect(await statesOf(payer)).toEqual(["pending"]);
  expect(await tooMuch()).toMatchObject({ outcome: "insufficient", autoTopUpBelowMicros: undefined });
});

test("credit that has expired is not free", async () => {
  const payer = await createAutoPayer(8_000_000n);
  await move(store.database, payer.accountId, 4_000_000n, { expiresAt: new Date(Date.now() + 86_400_000) });
  await placeHold(createTestBilling(store.database), payer, 4_000_000n);
  await topUpAfterRefusal(store.database, payer.accountId);
  expect(await statesOf(payer)).toEqual([]);
  await store.owner`
    WITH expired AS (UPDATE vx.grants SET expires_at = now() WHERE account_id = ${payer.accountId})
    UPDATE vx.accounts SET grants_expire_at = now() WHERE id = ${payer.accountId}`;
  await topUpAfterRefusal(store.database, payer.accountId);
  expect(await statesOf(payer)).toEqual(["pending"]);
});

test("a state that was read before the payment was stored is not applied", async () => {
  const payer = await createAutoPayer(1n);
  const { id, version } = await pendingOf(payer);
  await setTopUpPayment(store.database, id, `pi_${id}`);
  const failed = { ...SEEN, accountId: payer.accountId, status: "failed" as const, failure: "stopped" };
  expect(await applyPayment(store.database, id, version, failed)).toMatchObject({ outcome: "stale" });
  expect(await statesOf(payer)).toEqual(["pending"]);
});

test("one starts at once when the payment method is stored, or the top-ups are started, below the threshold", async () => {
  const payer = await createAutoPayer(1n);
  expect(await statesOf(payer)).toEqual(["pending"]);
  await see(payer, "failed", "card_declined");
  expect(await statesOf(payer)).toEqual(["failed"]);
  await put(payer);
  expect(await statesOf(payer)).toEqual(["pending", "failed"]);
});

test("refunds and adjustments start none", async () => {
  const payer = await createAutoPayer(6_000_000n);
  await move(store.database, payer.accountId, -5_000_000n);
  expect(await statesOf(payer)).toEqual([]);
  await charge(createTestBilling(store.database), payer, 1n);
  expect(await statesOf(payer)).toEqual(["pending"]);
});

test("those of a month never exceed its maximum, one that is not decided included, which is told once; a new month starts again", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createAutoPayer(5_000_000n, { monthlyMaxMicros: 25_000_000n });
  await charge(billing, payer, 1n);
  await see(payer, "paid");
  await charge(billing, payer, 10_000_000n);
  const auto = await settingsOf(payer);
  expect(auto).toMatchObject({ month_micros: 20_000_000n, pending_topup_id: (await pendingOf(payer)).id });
  await see(payer, "paid");
  await charge(billing, payer, 10_000_000n);
  await charge(billing, payer, 1n);
  expect(await statesOf(payer)).toEqual(["paid", "paid"]);
  expect(await eventsOf(payer)).toEqual(["topup.paid", "topup.paid", "topup.auto_failed monthly_max_reached 0"]);
  // The page for another card is looked up meanwhile.
  await storeCard(payer, { createdAt: new Date(2_000) });
  expect(await eventsOf(payer)).toHaveLength(3);
  await store.owner`UPDATE vx.topups SET created_at = created_at - interval '32 days' WHERE account_id = ${payer.accountId}`;
  await store.owner`UPDATE vx.auto_topups SET full_until = now(), due_at = now() WHERE account_id = ${payer.accountId}`;
  const due = await Promise.all([1, 2, 3].map(() => autoTopUpsDue(store.database, 100)));
  expect(due.flat().filter((id) => id === payer.accountId)).toHaveLength(1);
  await resumeAutoTopUp(store.database, payer.accountId);
  expect(await statesOf(payer)).toEqual(["pending", "paid", "paid"]);
});

test("a higher maximum starts again at once", async () => {
  const payer = await createAutoPayer(1n, { monthlyMaxMicros: 10_000_000n });
  await see(payer, "paid");
  await charge(createTestBilling(store.database), payer, 10_000_000n);
  expect(await statesOf(payer)).toEqual(["paid"]);
  await put(payer);
  expect(await statesOf(payer)).toEqual(["pending", "paid"]);
});

test("the third failure in a row stops them; a payment in between counts anew", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createAutoPayer(5_000_000n, { monthlyMaxMicros: 1_000_000_000n });
  const fail = async () => {
    await charge(billing, payer, 1_000n);
    await see(payer, "failed", "insufficient_funds");
  };
  await fail();
  await fail();
  await charge(billing, payer, 1_000n);
  await see(payer, "paid");
  await charge(billing, payer, 10_000_000n);
  await see(payer, "failed", "insufficient_funds");
  await fail();
  await fail();
  await charge(billing, payer, 1_000n);
  expect(await statesOf(payer)).toEqual(["failed", "failed", "failed", "paid", "failed", "failed"]);
  const failed = (n: number) => `topup.auto_failed insufficient_funds ${n}`;
  const last = ["topup.paid", failed(1), failed(2), failed(3), "topup.auto_disabled failures 3"];
  expect(await eventsOf(payer)).toEqual([failed(1), failed(2), ...last]);
  expect(await settingsOf(payer)).toMatchObject({ is_enabled: false, failures: 3, last_failure: "insufficient_funds" });
  await put(payer);
  expect(await settingsOf(payer)).toMatchObject({ is_enabled: true, failures: 0 });
});

test("a payment that is not decided blocks the next, also while the settings change", async () => {
  const payer = await createAutoPayer(1n);
  await see(payer, "open");
  await put(payer, { isEnabled: false });
  await put(payer);
  await storeCard(payer, { createdAt: new Date(2_000) });
  await charge(createTestBilling(store.database), payer, 1n);
  expect(await statesOf(payer)).toEqual(["pending"]);
  await see(payer, "paid");
  expect(await statesOf(payer)).toEqual(["paid"]);
});

test("none starts while the account owes something or is suspended, and none that waits is paid then", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createAutoPayer(1n);
  const paid = await pendingOf(payer);
  const allowed = async () => (await topUpCharge(store.database, paid.id)).is_allowed;
  expect(await allowed()).toBe(true);
  const first = await placeHold(billing, payer, 1n);
  await setAccountSuspended(store.database, TEST_ACTION, payer.accountId, true);
  expect(await allowed()).toBe(false);
  await see(payer, "failed", "stopped");
  await billing.end(endOf(payer, first, 1n));
  expect(await statesOf(payer)).toEqual(["failed"]);
  await setAccountSuspended(store.database, TEST_ACTION, payer.accountId, false);
  await credit(store.database, payer.accountId, 1_000_000n);
  const running = await placeHold(billing, payer, 1_000n);
  await store.owner`UPDATE vx.accounts SET owed_micros = 1000000000 WHERE id = ${payer.accountId}`;
  await billing.end(endOf(payer, running, 1n));
  expect(await statesOf(payer)).toEqual(["failed"]);
  await store.owner`UPDATE vx.accounts SET owed_micros = 0 WHERE id = ${payer.accountId}`;
});

test.each([
  ["stopped", { isEnabled: false }],
  ["lowered", { amountMicros: 9_000_000n }],
  ["limited to less in a month", { monthlyMaxMicros: 19_000_000n }],
])("one that waits is not paid after they were %s, and that is no failure of the card", async (_, changes) => {
  const payer = await createAutoPayer(1n);
  await see(payer, "paid");
  await charge(createTestBilling(store.database), payer, 10_000_000n);
  const { id } = await pendingOf(payer);
  const customer = { customer_id: `cus_${payer.accountId}`, method_id: "pm_1" };
  expect(await topUpCharge(store.database, id)).toEqual({ is_allowed: true, ...customer });
  await putByKey(payer, changes);
  expect((await topUpCharge(store.database, id)).is_allowed).toBe(false);
  await see(payer, "failed", "stopped");
  expect((await eventsOf(payer)).at(-1)).toBe("topup.auto_failed stopped 0");
});

test("one that is late is not paid if the balance has risen meanwhile", async () => {
  const payer = await createAutoPayer(1n);
  const { id } = await pendingOf(payer);
  await credit(store.database, payer.accountId, 10_000_000n);
  expect((await topUpCharge(store.database, id)).is_allowed).toBe(true);
  await store.owner`UPDATE vx.topups SET created_at = created_at - interval '11 minutes' WHERE id = ${id}`;
  expect((await topUpCharge(store.database, id)).is_allowed).toBe(false);
});

test("a key lowers and stops them, and neither starts nor raises them", async () => {
  const payer = await createPayer(store.database, 10_000_000n);
  const refused = { reason: "insufficient_scope" };
  await expect(putByKey(payer)).rejects.toMatchObject(refused);
  await put(payer);
  for (const name of ["thresholdMicros", "amountMicros", "monthlyMaxMicros"] as const) {
    await expect(putByKey(payer, { [name]: SETTINGS[name] + 1n }), name).rejects.toMatchObject(refused);
    await putByKey(payer, { [name]: SETTINGS[name] });
  }
  const lower = { thresholdMicros: 4_000_000n, amountMicros: 9_000_000n, monthlyMaxMicros: 20_000_000n };
  expect(await putByKey(payer, lower)).toMatchObject({ threshold_micros: 4_000_000n, amount_micros: 9_000_000n });
  await expect(putByKey(payer)).rejects.toMatchObject(refused);
  expect(await putByKey(payer, { isEnabled: false })).toMatchObject({ is_enabled: false, threshold_micros: 4_000_000n });
  await expect(putByKey(payer, lower)).rejects.toMatchObject(refused);
  expect(await eventsOf(payer)).toEqual(["topup.auto_disabled key 0"]);
});

test("the newest page decides the payment method, and only pages of the account's customer count", async () => {
  const payer = await createAutoPayer(10_000_000n);
  const other = { id: "pm_2", text: "mastercard •••• 4444" };
  const method = async () => (await settingsOf(payer))?.method_id;
  await storeCard(payer, { id: "cs_2", method: other, createdAt: new Date(500) });
  expect(await method()).toBe("pm_1");
  await storeCard(payer, { id: "cs_3", method: other, createdAt: new Date(3_000), customerId: "cus_other" });
  expect(await method()).toBe("pm_1");
  await storeCard(payer, { id: "cs_2", method: other, createdAt: new Date(2_000) });
  expect(await method()).toBe("pm_2");
  await setAutoTopUpPage(store.database, payer.accountId, { id: "cus_second" }, { ...PAGE, id: "cs_4" });
  expect(await settingsOf(payer)).toMatchObject({ customer_id: `cus_${payer.accountId}`, page_id: "cs_4" });
  await storeCard(payer, { id: "cs_4", method: undefined });
  expect(await settingsOf(payer)).toMatchObject({ method_id: "pm_2", page_id: null });
});

test("the page of an account that is not here is ignored", async () => {
  await storeCard(payerOf(typeIds.account(), ""));
});

test("without a payment method none starts", async () => {
  const payer = await createPayer(store.database, 10_000_000n);
  await put(payer);
  await charge(createTestBilling(store.database), payer, 9_000_000n);
  expect(await statesOf(payer)).toEqual([]);
});

test("the money adds up afterwards", async () => {
  expect(await moneyProblems(store)).toEqual([]);
});
