import { afterAll, beforeAll, expect, test } from "vitest";
import { Settler } from "../../src/billing/settler.ts";
import type { Billing } from "../../src/store/billing.ts";
import { Database } from "../../src/store/driver/database.ts";
import { createPayer, endOf, holdOf, moneyProblems, newGenerationId } from "../support/payer.ts";
import { createTestBilling, useStore } from "../support/store.ts";

const store = useStore();
let billing: Billing;

beforeAll(async () => {
  billing = createTestBilling(store.database);
});
afterAll(async () => {
  expect(await moneyProblems(store)).toEqual([]);
});

type Setup = { readonly billing: Billing; readonly wait: (attempts: number) => Promise<unknown> };

/** The waits between attempts take as long as the given function, and count as their nominal time. */
function settlerWith({ billing, wait }: Setup) {
  let nowMs = 0;
  let waits = 0;
  const told: string[] = [];
  const settler = new Settler({
    billing,
    now: () => nowMs,
    wait: async (ms) => {
      nowMs += ms;
      await wait(++waits);
    },
    onRetry: ({ holdId }) => told.push(`retry ${holdId}`),
    onFailure: ({ holdId }) => told.push(`failure ${holdId}`),
  });
  return { settler, told, elapsedMs: () => nowMs };
}

test("a settlement that fails with an unexpected error is retried until it succeeds", async () => {
  const payer = await createPayer(store.database, 100n);
  const id = newGenerationId(payer);
  await billing.hold(holdOf(payer, 60n, id));
  const { owner } = store;
  await owner`ALTER FUNCTION vx.bill RENAME TO renamed`;
  const { settler, told, elapsedMs } = settlerWith({
    billing,
    wait: async (attempts) => {
      if (attempts === 60) await owner`ALTER FUNCTION vx.renamed RENAME TO bill`;
    },
  });
  expect(await settler.end(endOf(payer, id, 10n))).toMatchObject({ outcome: "settled", chargedMicros: 10n });
  expect(elapsedMs()).toBeGreaterThan(60_000);
  expect(told).toEqual([`retry ${id}`]);
});

test("a stopping server continues for a minute, then reports unsettled generations", async () => {
  const payer = await createPayer(store.database, 100n);
  const id = newGenerationId(payer);
  const nowhere = new Database(
    { kind: "socket", folder: "/nonexistent", user: "x", database: "x" },
    { connections: 1, statementTimeoutMs: 1_000, name: "test", maxStatements: 10, maxWaitMs: 1_000 },
  );
  const { settler, told, elapsedMs } = settlerWith({
    billing: createTestBilling(nowhere),
    wait: async () => undefined,
  });
  settler.limitRetries();
  await expect(settler.end(endOf(payer, id, undefined))).rejects.toMatchObject({ reason: "unavailable" });
  expect(elapsedMs()).toBeGreaterThan(55_000);
  expect(elapsedMs()).toBeLessThanOrEqual(60_000);
  expect(told).toEqual([`retry ${id}`, `failure ${id}`]);
  await nowhere.close();
});
