import { expect, test } from "vitest";
import { createPayer, credit, entriesOf, moneyOf, moneyProblems, move, type Payer } from "../support/payer.ts";
import { useStore } from "../support/store.ts";

const store = useStore();

/** Over any of the connections. */
const post = ({ accountId }: Payer, micros: bigint, idempotencyKey: string) =>
  move(store.database, accountId, micros, { idempotencyKey });

test("concurrent credits and adjustments keep the balances, the rows and their order exact", async () => {
  const payers = await Promise.all([0, 1, 2].map(() => createPayer(store.database, 0n)));
  const outcomes = await Promise.allSettled(
    Array.from({ length: 90 }, (_, i) => post(payers[i % 3] as Payer, i % 4 === 3 ? -25n : BigInt(1 + (i % 7)), `${i}`)),
  );
  const refused = outcomes.filter(({ status }) => status === "rejected");
  // Adjustments that arrive before the balance covers them.
  for (const one of refused) expect(one).toMatchObject({ reason: { reason: "insufficient_balance" } });
  const rows = await Promise.all(payers.map((payer) => entriesOf(store, payer)));
  expect(rows.flat()).toHaveLength(90 - refused.length);
  expect(await moneyProblems(store)).toEqual([]);
});

test("one idempotency key sent 40 times at once changes the balance once", async () => {
  const payer = await createPayer(store.database, 0n);
  const entries = await Promise.all(Array.from({ length: 40 }, () => post(payer, 5n, "once")));
  expect(new Set(entries.map(({ id }) => id)).size).toBe(1);
  expect(await entriesOf(store, payer)).toEqual([["credit", 5]]);
});

test("concurrent withdrawals that exceed the balance succeed only as long as it covers them", async () => {
  const payer = await createPayer(store.database, 0n);
  await credit(store.database, payer.accountId, 100n);
  const endings = await Promise.allSettled(Array.from({ length: 50 }, (_, i) => post(payer, -10n, `out-${i}`)));
  expect(endings.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
  expect(await moneyOf(store, payer)).toMatchObject({ balance: 0 });
});
