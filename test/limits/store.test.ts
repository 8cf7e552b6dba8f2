import { beforeAll, expect, test } from "vitest";
import { setAccountPlan } from "../../src/accounts/store.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import type { HoldOutcome, HoldRequest } from "../../src/generations/bill-statement.ts";
import type { Billing } from "../../src/generations/billing.ts";
import { revokeKey } from "../../src/keys/store.ts";
import { listLimits, removeLimit } from "../../src/limits/store.ts";
import { putPlan } from "../../src/plans/store.ts";
import { TEST_ACTION } from "../support/action.ts";
import { addToCounters, createChild, limitProblems, passTime, setTestLimit } from "../support/limits.ts";
import { charge, createPayer, endOf, holdOf, moneyProblems, newGenerationId, type Payer, placeHold } from "../support/payer.ts";
import { createTestBilling, findingsOf, useStore } from "../support/store.ts";

const store = useStore();
/** Two servers. */
let billings: [Billing, Billing];

beforeAll(() => {
  const options = { pipelines: 2, maxWaiting: 20_000 };
  billings = [createTestBilling(store.database, options), createTestBilling(store.database, { ...options, serverId: "two" })];
});

function hold(payer: Payer, amount: bigint, more: Partial<HoldRequest> = {}): Promise<HoldOutcome> {
  return billings[0].hold({ ...holdOf(payer, amount), ...more });
}

const childOf = (parent: Payer) => createChild(store.database, parent);

const accountOf = ({ accountId }: Payer) => ({ kind: "account", id: accountId }) as const;
const keyOf = ({ keyId }: Payer) => ({ kind: "key", id: keyId }) as const;

async function problems({ accountId }: Payer): Promise<object[]> {
  return [...(await limitProblems(store.owner, accountId)), ...(await moneyProblems(store))];
}

test.each([
  ["cost", 700n, 100],
  ["tokens", 700n, 100],
  ["generations", 100n, 100],
  ["concurrent", 100n, 100],
] as const)("a limit of %s admits exactly what fits it, of 400 holds at once over two servers", async (metric, amount, count) => {
  const payer = await createPayer(store.database, 1_000_000n);
  await setTestLimit(store.database, accountOf(payer), { metric, amount });
  const outcomes = await Promise.all(Array.from({ length: 400 }, (_, i) => (billings[i % 2] as Billing).hold(holdOf(payer, 7n))));
  expect(outcomes.filter(({ outcome }) => outcome === "held")).toHaveLength(count);
  expect(outcomes.find(({ outcome }) => outcome === "limited")).toMatchObject({ limit: { metric, amount } });
  expect(await problems(payer)).toEqual([]);
});

test("a settlement counts in the window in which it commits", async () => {
  const payer = await createPayer(store.database, 1_000_000n);
  const id = await setTestLimit(store.database, accountOf(payer), { metric: "cost", amount: 100n });
  const generation = await placeHold(billings[0], payer, 70n);
  await addToCounters(store.owner, id, { spent: 90 });
  await passTime(store.owner, payer.accountId, "1 day");
  await billings[0].end(endOf(payer, generation, 30n));
  expect(await listLimits(store.database, accountOf(payer))).toMatchObject([{ spent: 30n, held: 0n }, {}, {}]);
  expect(await problems(payer)).toEqual([]);
});

test("users beyond 100,000 share one counter", async () => {
  const payer = await createPayer(store.database, 1_000_000n);
  await setTestLimit(store.database, accountOf(payer), { metric: "generations", amount: 1n, perUser: true });
  await hold(payer, 1n, { user: "known" });
  await store.owner`UPDATE vx.limit_users SET counters = 100000 WHERE account_id = ${payer.accountId}`;
  expect(await hold(payer, 1n, { user: "new" })).toEqual({ outcome: "held" });
  expect(await hold(payer, 1n, { user: "newer" })).toMatchObject({ outcome: "limited" });
  expect(await hold(payer, 1n, { user: "known" })).toMatchObject({ outcome: "limited" });
});

test("a child counts against the limits of its ancestors, also after they were revoked", async () => {
  const parent = await createPayer(store.database, 1_000_000n);
  const child = await childOf(await childOf(parent));
  await setTestLimit(store.database, keyOf(parent), { metric: "cost", amount: 100n });
  const born = await childOf(parent);
  await charge(billings[0], child, 60n);
  await revokeKey(store.database, TEST_ACTION, parent.keyId);
  expect(await hold(born, 41n)).toMatchObject({ outcome: "limited", limit: { ownerId: parent.keyId } });
  expect(await hold(born, 40n)).toEqual({ outcome: "held" });
  expect(await problems(parent)).toEqual([]);
});

test("a ninth level of keys is refused", async () => {
  let key = await createPayer(store.database, 0n);
  for (let level = 2; level <= 8; level++) key = await childOf(key);
  await expect(childOf(key)).rejects.toMatchObject({ reason: "invalid_argument" });
});

test("a new limit counts what its window has spent, and calls that run", async () => {
  const payer = await createPayer(store.database, 1_000_000n);
  await charge(billings[0], payer, 60n, "ada");
  const running = await placeHold(billings[0], payer, 30n);
  for (const window of ["hour", "week", "month", "total"] as const)
    await setTestLimit(store.database, keyOf(payer), { metric: "cost", amount: 100n, window });
  await setTestLimit(store.database, accountOf(payer), { metric: "tokens", amount: 100n, perUser: true });
  expect(await hold(payer, 41n)).toMatchObject({ outcome: "limited", limit: { spent: 60n } });
  expect(await hold(payer, 41n, { user: "ada" })).toMatchObject({ outcome: "limited" });
  await billings[0].end(endOf(payer, running, 30n));
  expect(await hold(payer, 11n)).toMatchObject({ outcome: "limited", limit: { spent: 90n } });
  expect(await problems(payer)).toEqual([]);
});

test("setting a limit again changes its amount and keeps what was counted; removing one leaves nothing behind", async () => {
  const payer = await createPayer(store.database, 1_000_000n);
  const id = await setTestLimit(store.database, accountOf(payer), { metric: "cost", amount: 100n });
  const running = newGenerationId(payer);
  await charge(billings[0], payer, 60n);
  await billings[0].hold(holdOf(payer, 30n, running));
  expect(await setTestLimit(store.database, accountOf(payer), { metric: "cost", amount: 95n })).toBe(id);
  expect(await hold(payer, 6n)).toMatchObject({ outcome: "limited", limit: { spent: 60n, held: 30n } });
  await removeLimit(store.database, TEST_ACTION, accountOf(payer), id);
  expect(await hold(payer, 600n)).toEqual({ outcome: "held" });
  expect((await billings[0].end(endOf(payer, running, 30n))).outcome).toBe("settled");
  const [left] = await store.owner`
    SELECT (SELECT count(*) FROM vx.limit_counters WHERE account_id = ${payer.accountId})::int AS counters,
           (SELECT is_limited FROM vx.accounts WHERE id = ${payer.accountId}) AS is_limited`;
  expect(left).toEqual({ counters: 0, is_limited: false });
});

test("an owner can have 20 limits of operators", async () => {
  const payer = await createPayer(store.database, 0n);
  const set = (n: number) => setTestLimit(store.database, accountOf(payer), { metric: "cost", amount: 1n, model: `m${n}` });
  for (let n = 1; n <= 20; n++) await set(n);
  await set(20);
  await expect(set(21)).rejects.toMatchObject({ reason: "invalid_argument" });
});

test("a temporary amount is valid until its end", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const until = (ms: number) => ({ amount: 100n, until: new Date(Date.now() + ms) });
  const set = (ms: number) =>
    setTestLimit(store.database, accountOf(payer), { metric: "cost", amount: 10n, temporary: until(ms) });
  await set(60_000);
  expect(await hold(payer, 90n)).toEqual({ outcome: "held" });
  await set(-60_000);
  expect(await hold(payer, 1n)).toMatchObject({ outcome: "limited", limit: { amount: 10n } });
});

test("each of two raised limits is raised until its own end", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const raise = (metric: "cost" | "tokens", hours: number) =>
    setTestLimit(store.database, accountOf(payer), {
      metric,
      amount: 10n,
      temporary: { amount: 100n, until: new Date(Date.now() + hours * 3_600_000) },
    });
  await raise("cost", 1);
  await raise("tokens", 3);
  expect(await hold(payer, 20n)).toEqual({ outcome: "held" });
  // Two hours pass.
  const { accountId } = payer;
  await store.owner`UPDATE vx.limits SET temporary_until = temporary_until - interval '2 hours' WHERE owner_id = ${accountId}`;
  await store.owner`UPDATE vx.limit_counters SET valid_until = valid_until - interval '2 hours' WHERE account_id = ${accountId}`;
  expect(await hold(payer, 1n)).toMatchObject({ outcome: "limited", limit: { metric: "cost", amount: 10n } });
});

test("a list shows nothing spent in a window that has ended, before the next call too", async () => {
  const payer = await createPayer(store.database, 1_000n);
  await setTestLimit(store.database, accountOf(payer), { metric: "cost", amount: 100n });
  await charge(billings[0], payer, 60n);
  expect(await listLimits(store.database, accountOf(payer))).toMatchObject([{ spent: 60n }, {}, {}]);
  await passTime(store.owner, payer.accountId, "1 day");
  expect(await listLimits(store.database, accountOf(payer))).toMatchObject([{ spent: 0n }, {}, {}]);
});

test("of several limits, the one with the longest wait is reported", async () => {
  const payer = await createPayer(store.database, 1_000_000n);
  const set = (limit: Parameters<typeof setTestLimit>[2]) => setTestLimit(store.database, accountOf(payer), limit);
  const refusing = async (amount: bigint) => {
    const outcome = await hold(payer, amount);
    return outcome.outcome === "limited" && `${outcome.limit.metric} ${outcome.limit.window}`.trim();
  };
  await set({ metric: "concurrent", amount: 1n });
  await charge(billings[0], payer, 60n);
  await hold(payer, 30n);
  expect(await refusing(10n)).toBe("concurrent");
  await set({ metric: "cost", amount: 65n, window: "day" });
  expect(await refusing(10n)).toBe("cost day");
  await set({ metric: "generations", amount: 1n, window: "total" });
  expect(await refusing(10n)).toBe("generations total");
  await set({ metric: "generations", amount: 9n, window: "total" });
  // A call that alone needs more than an amount waits longest.
  await set({ metric: "cost", amount: 150n, window: "day" });
  await set({ metric: "cost", amount: 100n, window: "hour" });
  expect(await refusing(101n)).toBe("cost hour");
});

test("abandoned holds release their counters, and counters of passed windows are swept", async () => {
  const payer = await createPayer(store.database, 1_000n);
  await setTestLimit(store.database, accountOf(payer), { metric: "generations", amount: 1n, perUser: true });
  await hold(payer, 1n, { user: "ada" });
  const lane = laneOfId(payer.accountId);
  await store.owner`UPDATE vx.holds SET expires_at = now() - interval '1 s' WHERE account_id = ${payer.accountId}`;
  await store.database.call("sweep", lane);
  expect(await problems(payer)).toEqual([]);
  await passTime(store.owner, payer.accountId, "2 days");
  expect(await store.database.call("lanes_to_sweep", lane, lane)).toEqual([{ lanes_to_sweep: lane }]);
  await store.database.call("sweep", lane);
  const [left] = await store.owner`
    SELECT counters, (SELECT count(*)::int FROM vx.limit_counters c WHERE c.account_id = u.account_id AND user_id <> '') AS rows
    FROM vx.limit_users u WHERE account_id = ${payer.accountId}`;
  expect(left).toEqual({ counters: 0, rows: 0 });
});

test("a quote asks the same rule and holds nothing", async () => {
  const payer = await createPayer(store.database, 1_000n);
  await setTestLimit(store.database, keyOf(payer), { metric: "tokens", amount: 10n, window: "minute" });
  const quote = (amount: bigint) => billings[0].quoteHold(holdOf(payer, amount));
  expect(await quote(11n)).toMatchObject({ outcome: "limited", tokenRoom: 10n });
  expect(await quote(10n)).toMatchObject({ outcome: "held", minuteLimits: [{ remaining: 0n }] });
  expect(await quote(2_000n)).toMatchObject({ outcome: "insufficient", tokenRoom: 10n });
  expect(await hold(payer, 10n)).toMatchObject({ outcome: "held" });
});

const rulesOf = async (payer: Payer) => new Set((await findingsOf(store.database, payer.accountId)).map(({ rule }) => rule));

test("the audit finds counters that differ from the ledger or from the open holds", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const [account, key] = [accountOf(payer), keyOf(payer)];
  const ids = [
    await setTestLimit(store.database, key, { metric: "cost", amount: 100n, window: "minute" }),
    await setTestLimit(store.database, account, { metric: "tokens", amount: 100n, window: "month" }),
    await setTestLimit(store.database, account, { metric: "generations", amount: 9n, perUser: true }),
    await setTestLimit(store.database, key, { metric: "cost", amount: 100n, window: "total" }),
  ];
  await charge(billings[0], payer, 10n, "ada");
  await hold(payer, 7n, { user: "ada" });
  expect(await rulesOf(payer)).toEqual(new Set());
  for (const id of ids) {
    await addToCounters(store.owner, id, { spent: 1 });
    expect(await rulesOf(payer)).toEqual(new Set(["limit_spent_equals_ledger"]));
    await addToCounters(store.owner, id, { spent: -1, held: 1 });
    expect(await rulesOf(payer)).toEqual(new Set(["limit_held_equals_open_holds"]));
    await addToCounters(store.owner, id, { held: -1 });
  }
});

test("a counter of a plan counts the calls on that plan only, also after a return, and the audit agrees", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const child = await childOf(payer);
  const plan = { kind: "plan", id: "left" } as const;
  for (const name of ["left", "visited"])
    await putPlan(store.database, TEST_ACTION, { name, rpm: 1_000, max_active_keys: 10, max_keys_created_per_hour: undefined });
  const moveTo = (name: string) => setAccountPlan(store.database, TEST_ACTION, payer.accountId, name);
  const ids = [
    await setTestLimit(store.database, plan, { metric: "cost", amount: 1_000n, window: "minute" }),
    await setTestLimit(store.database, plan, { metric: "generations", amount: 100n, window: "month" }),
    await setTestLimit(store.database, plan, { metric: "cost", amount: 1_000n, window: "total", perUser: true }),
  ];
  await setTestLimit(store.database, { ...plan, id: "visited" }, { metric: "cost", amount: 1_000n });
  await moveTo("left");
  const spent = async (user: string) =>
    (await listLimits(store.database, keyOf(payer), user))
      .filter(({ id, subject_id, period }) => ids.includes(id) && subject_id === payer.keyId && period !== "minute")
      .map((limit) => `${limit.metric} ${limit.period} ${limit.spent}`);
  await charge(billings[0], child, 10n, "ada");
  const running = await placeHold(billings[0], payer, 30n);
  for (const micros of [1n, 2n]) {
    await moveTo("visited");
    expect(await rulesOf(payer)).toEqual(new Set());
    await charge(billings[0], child, 100n + micros, "ada");
    await charge(billings[1], payer, 100n + micros, "bob");
    expect(await rulesOf(payer)).toEqual(new Set());
    await moveTo("left");
    expect(await spent("ada")).toContain("cost total 10");
    expect(await rulesOf(payer)).toEqual(new Set());
  }
  // A call counts on the plan that the key has when it is charged.
  await moveTo("visited");
  await billings[0].end(endOf(payer, running, 20n));
  await moveTo("left");
  await charge(billings[0], payer, 5n, "ada");
  expect(await spent("ada")).toEqual(["cost total 15", "generations month 2"]);
  expect(await rulesOf(payer)).toEqual(new Set());
  for (const id of ids) {
    await addToCounters(store.owner, id, { spent: 1 });
    expect(await rulesOf(payer)).toEqual(new Set(["limit_spent_equals_ledger"]));
    await addToCounters(store.owner, id, { spent: -1 });
  }
});

test("entries of an account never go back in time, and count in the window of their time", async () => {
  const payer = await createPayer(store.database, 1_000n);
  await setTestLimit(store.database, accountOf(payer), { metric: "cost", amount: 100n, window: "hour" });
  const ahead = new Date(Date.now() + 7_200_000);
  await store.owner`UPDATE vx.accounts SET last_at = ${ahead} WHERE id = ${payer.accountId}`;
  await charge(billings[0], payer, 60n);
  const [row] = await store.owner<{ created_at: Date }[]>`
    SELECT created_at FROM vx.ledger WHERE account_id = ${payer.accountId} AND kind = 'generation'`;
  expect(row?.created_at).toEqual(ahead);
  expect(await hold(payer, 41n)).toMatchObject({ outcome: "limited", limit: { spent: 60n } });
  expect(await problems(payer)).toEqual([]);
});
