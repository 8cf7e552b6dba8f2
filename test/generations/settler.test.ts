import { afterAll, beforeAll, expect, test } from "vitest";
import { Database } from "../../src/database/driver/database.ts";
import type { DomainError } from "../../src/domain/errors.ts";
import { type Billing, Settler } from "../../src/generations/billing.ts";
import { createPayer, endOf, holdOf, moneyProblems, newGenerationId, placeHold } from "../support/payer.ts";
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
    onRetry: ({ generationId }) => told.push(`retry ${generationId}`),
    onRefusal: ({ generationId }) => told.push(`refusal ${generationId}`),
    onFailure: ({ generationId }) => told.push(`failure ${generationId}`),
  });
  return { settler, told, elapsedMs: () => nowMs };
}

test("a settlement that fails with an unexpected error is retried until it succeeds", async () => {
  const payer = await createPayer(store.database, 100n);
  const id = await placeHold(billing, payer, 60n);
  const { owner } = store;
  await owner`ALTER FUNCTION vx.bill RENAME TO renamed`;
  const { settler, told, elapsedMs } = settlerWith({
    billing,
    wait: async (attempts) => {
      if (attempts === 36) await owner`ALTER FUNCTION vx.renamed RENAME TO bill`;
    },
  });
  expect(await settler.end(endOf(payer, id, 10n))).toMatchObject({ outcome: "settled", chargedMicros: 10n });
  expect(elapsedMs()).toBeGreaterThan(60_000);
  expect(told).toEqual([`retry ${id}`]);
});

/** From now on, charges fail with this error, until `end` is called. Releases succeed. */
async function refuseCharges(code: string): Promise<{ as(code: string): Promise<unknown>; end(): Promise<unknown> }> {
  const { owner } = store;
  const refuse = (sqlstate: string) =>
    owner.unsafe(`CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '${sqlstate}'; END $$`);
  await refuse(code);
  await owner`CREATE TRIGGER refuse BEFORE INSERT ON vx.ledger FOR EACH ROW EXECUTE FUNCTION public.refuse()`;
  return { as: refuse, end: () => owner`DROP TRIGGER refuse ON vx.ledger` };
}

test.each(["53100", "25006"])("a charge that the database refuses with %s for ten seconds becomes a release", async (code) => {
  const payer = await createPayer(store.database, 100n);
  const id = await placeHold(billing, payer, 60n);
  const refusal = await refuseCharges(code);
  const { settler, told, elapsedMs } = settlerWith({ billing, wait: async () => undefined });
  const givenUp: number[] = [];
  const ended = await settler.end(endOf(payer, id, 10n), () => givenUp.push(elapsedMs()));
  await refusal.end();
  expect(ended).toEqual({ outcome: "released" });
  expect(givenUp).toHaveLength(1);
  expect(givenUp[0]).toBeGreaterThanOrEqual(10_000);
  expect(givenUp[0]).toBeLessThanOrEqual(13_000);
  expect(told).toEqual([`retry ${id}`, `refusal ${id}`]);
  expect(await billing.findEntry(payer.accountId, id)).toBeUndefined();
});

test.each([
  ["the outcome of an attempt is unknown", "57014", true],
  ["a part of the reply was delivered", "53100", false],
] as const)("a refused charge is made once the database accepts it, if %s", async (_, first, mayGiveUp) => {
  const payer = await createPayer(store.database, 100n);
  const id = await placeHold(billing, payer, 60n);
  const refusal = await refuseCharges(first);
  const { settler, elapsedMs } = settlerWith({
    billing,
    wait: async (attempts) => {
      if (attempts === 1) await refusal.as("53100");
      if (attempts === 20) await refusal.end();
    },
  });
  const ended = await settler.end(endOf(payer, id, 10n), mayGiveUp ? () => expect.unreachable("gave up") : undefined);
  expect(ended).toMatchObject({ outcome: "settled", chargedMicros: 10n });
  expect(elapsedMs()).toBeGreaterThan(20_000);
});

test("a release that follows a refused charge is no unsettled generation when the server stops", async () => {
  const payer = await createPayer(store.database, 100n);
  const id = await placeHold(billing, payer, 60n);
  const refusal = await refuseCharges("53100");
  const { owner } = store;
  let isGivenUp = false;
  const { settler, told } = settlerWith({
    billing,
    wait: async () => {
      if (!isGivenUp) return;
      isGivenUp = false;
      await owner`ALTER FUNCTION vx.bill RENAME TO renamed`;
      settler.limitRetries();
    },
  });
  const ended = settler.end(endOf(payer, id, 10n), () => {
    isGivenUp = true;
  });
  await expect(ended).rejects.toThrow();
  expect(told).toEqual([`retry ${id}`, `refusal ${id}`]);
  await owner`ALTER FUNCTION vx.renamed RENAME TO bill`;
  await refusal.end();
  expect(await billing.end(endOf(payer, id, undefined))).toEqual({ outcome: "released" });
});

test("charges that a full disk refuses do not fail the releases in their batch", async () => {
  const payer = await createPayer(store.database, 100n);
  const [charged, released] = [newGenerationId(payer), newGenerationId(payer)];
  await billing.hold(holdOf(payer, 40n, charged));
  await billing.hold(holdOf(payer, 40n, released));
  const refusal = await refuseCharges("53100");
  const charge = endOf(payer, charged, 10n);
  const ends = [billing.end(charge).catch((error: DomainError) => error.reason), billing.end(endOf(payer, released, undefined))];
  expect(await Promise.all(ends)).toEqual(["unavailable", { outcome: "released" }]);
  await refusal.end();
  expect(await billing.end(charge)).toMatchObject({ outcome: "settled" });
});

test("a stopping server continues for a minute, then reports unsettled generations", async () => {
  const payer = await createPayer(store.database, 100n);
  const id = newGenerationId(payer);
  const nowhere = new Database(
    { kind: "socket", folder: "/nonexistent", user: "x", database: "x" },
    { connections: 1, statementTimeoutMs: 1_000, name: "test", maxStatements: 10, maxWaitMs: 20 },
  );
  // A connection that is closed rejects at once.
  await nowhere.close();
  const { settler, told, elapsedMs } = settlerWith({ billing: createTestBilling(nowhere), wait: async () => undefined });
  settler.limitRetries();
  await expect(settler.end(endOf(payer, id, undefined))).rejects.toMatchObject({ reason: "unavailable" });
  expect(elapsedMs()).toBeGreaterThan(55_000);
  expect(elapsedMs()).toBeLessThanOrEqual(60_000);
  expect(told).toEqual([`retry ${id}`, `failure ${id}`]);
});
