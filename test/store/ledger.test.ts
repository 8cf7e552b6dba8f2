import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestAccount, type Operator, operatorOf } from "../support/fixtures.ts";

let servers: TestApp[];
let operators: [Operator, Operator];

beforeAll(async () => {
  const first = await startTestApp();
  const second = await startTestApp({ database: first.database });
  servers = [first, second];
  operators = [operatorOf(first), operatorOf(second)];
});
afterAll(async () => {
  for (const server of [...servers].reverse()) await server.stop();
});

const on = (i: number) => operators[i % 2] as Operator;

test("concurrent credits and adjustments over two servers keep the balance, rows and order exact", async () => {
  const accounts = await Promise.all([0, 1, 2].map((i) => createTestAccount(on(i))));
  const make = async (i: number) => {
    const move = { accountId: accounts[i % 3] as string, reason: `move ${i}`, idempotencyKey: `${i}` };
    try {
      if (i % 4 === 3) await on(i).adjustAccount({ ...move, amountMicros: -25n });
      else await on(i).creditAccount({ ...move, amountMicros: BigInt(1 + (i % 7)) });
      return "moved";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const endings: string[] = [];
  // Servers refuse statements that wait for a connection for three seconds, as more at once can do on a busy machine.
  for (let first = 0; first < 90; first += 45)
    endings.push(...(await Promise.all(Array.from({ length: 45 }, (_, i) => make(first + i)))));
  const refused = endings.filter((ending) => ending !== "moved");
  // Adjustments that arrive before the balance covers them are rejected.
  for (const text of refused) expect(text).toContain("[failed_precondition]");

  let rows = 0;
  for (const [i, accountId] of accounts.entries()) {
    const { entries } = await on(i).listLedgerEntries({ accountId, pageSize: 1_000 });
    const { account } = await on(i + 1).getAccount({ accountId });
    const oldestFirst = entries.toReversed();
    expect(oldestFirst.map(({ seq }) => Number(seq))).toEqual(oldestFirst.map((_, n) => n + 1));
    let balance = 0n;
    for (const entry of oldestFirst) {
      balance += entry.amountMicros;
      expect(entry.balanceAfterMicros).toBe(balance);
      expect(balance).toBeGreaterThanOrEqual(0n);
    }
    expect(account?.balanceMicros).toBe(balance);
    rows += entries.length;
  }
  expect(rows).toBe(90 - refused.length);
  expect(await on(0).audit({})).toMatchObject({ consistent: true, findings: [] });
});

test("one idempotency key sent 40 times at once over two servers changes the balance once", async () => {
  const accountId = await createTestAccount(on(0));
  const credit = { accountId, amountMicros: 5n, reason: "invoice", idempotencyKey: "once" };
  const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => on(i).creditAccount(credit)));
  expect(new Set(answers.map(({ entry }) => entry?.id)).size).toBe(1);
  expect(answers.map(({ account }) => account?.balanceMicros)).toEqual(Array(40).fill(5n));
  expect((await on(1).listLedgerEntries({ accountId })).entries).toHaveLength(1);
});

test("concurrent withdrawals that exceed the balance succeed only as long as it covers them", async () => {
  const accountId = await createTestAccount(on(0));
  await on(0).creditAccount({ accountId, amountMicros: 100n, reason: "invoice", idempotencyKey: "in" });
  const endings = await Promise.allSettled(
    Array.from({ length: 50 }, (_, i) =>
      on(i).adjustAccount({ accountId, amountMicros: -10n, reason: "out", idempotencyKey: `out-${i}` }),
    ),
  );
  expect(endings.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
  expect((await on(0).getAccount({ accountId })).account?.balanceMicros).toBe(0n);
});

test("an audit during ledger changes finds no difference, because it reads each account in one snapshot", async () => {
  const accounts = await Promise.all([0, 1, 2, 3].map((i) => createTestAccount(on(i))));
  let moving = true;
  const movers = accounts.map(async (accountId, i) => {
    for (let n = 0; moving; n++) {
      const move = { accountId, amountMicros: 3n, reason: "move", idempotencyKey: `move-${n}` };
      await on(i + n).creditAccount(move);
    }
  });
  try {
    for (let i = 0; i < 3; i++) expect((await on(i).audit({})).findings).toEqual([]);
  } finally {
    moving = false;
    await Promise.all(movers);
  }
});
