import { expect, test } from "vitest";
import type { Lane } from "../../src/domain/lane.ts";
import { type Rerating, rerate } from "../../src/ledger/corrections.ts";
import { TEST_ACTION } from "../support/action.ts";
import { charge, createPayer, type Payer } from "../support/payer.ts";
import { modelOf } from "../support/samples.ts";
import { createTestBilling, useOwnStore } from "../support/store.ts";

const store = useOwnStore();
const MODEL = modelOf();
const ALL: Rerating = {
  model: MODEL.id,
  from: new Date("2026-01-01"),
  to: new Date("2100-01-01"),
  prices: { ...MODEL.prices, input: 0n },
  reason: "test",
  apply: true,
};
const PIECES = { entries: 1, accounts: 1 };

/** Accounts of one lane with a charge of 10, each several times. */
async function payersIn(lane: number, charges: readonly number[]): Promise<Payer[]> {
  const billing = createTestBilling(store.database);
  const payers: Payer[] = [];
  for (const count of charges) {
    const payer = await createPayer(store.database, 1_000n, lane as Lane);
    for (let i = 0; i < count; i++) await charge(billing, payer, 10n);
    payers.push(payer);
  }
  return payers;
}

test("reads the accounts of a lane and their entries in pieces", async () => {
  const [one, , other] = await payersIn(7, [2, 0, 3]);
  const rows = [];
  for await (const row of rerate(store.database, TEST_ACTION, ALL, async () => {}, PIECES)) rows.push(row);
  expect(new Map(rows.map(({ account_id, adjusted }) => [account_id, adjusted]))).toEqual(
    new Map([
      [one?.accountId, 2n],
      [other?.accountId, 3n],
    ]),
  );
});

test("stops between two pieces of an account", async () => {
  const [payer] = await payersIn(8, [2]);
  const corrected = async () =>
    (await store.owner`SELECT 1 FROM vx.entry_adjustments WHERE account_id = ${payer?.accountId ?? ""}`).length;
  const check = async () => {
    if ((await corrected()) === 1) throw new Error("stopped");
  };
  const rows = rerate(store.database, TEST_ACTION, ALL, check, PIECES);
  await expect(rows.next()).rejects.toThrow("stopped");
  expect(await corrected()).toBe(1);
});
