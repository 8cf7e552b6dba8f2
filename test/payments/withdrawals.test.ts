// A hold proves the right to its call, so a right is withdrawn before or after it, never during it.

import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { stepOfClosing } from "../../src/accounts/closing.ts";
import { setAccountSuspended } from "../../src/accounts/store.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { reportLeaks, revokeKey, rotateKey, updateKey } from "../../src/keys/store.ts";
import { setAccountPrices } from "../../src/prices/store.ts";
import { TEST_ACTION } from "../support/action.ts";
import { untilWaiting } from "../support/database.ts";
import { createPayer, endOf, holdOf, newGenerationId, type Payer } from "../support/payer.ts";
import { createTestBilling, useStore } from "../support/store.ts";

const store = useStore();

/** Runs the statement, calls the function, and ends the transaction of the statement when the function resolves. */
async function during(statement: string, parameter: string, run: () => Promise<void>): Promise<void> {
  await store.owner.begin(async (transaction) => {
    await transaction.unsafe(statement, [parameter]);
    await run();
  });
}

const newSecret = ({ accountId }: Payer) => generateKey(laneOfId(accountId), randomBytes);
const CLOSING = { reason: "test", balance: "written_off", isEndedElsewhere: false, isLogged: false, rows: 1 } as const;

const WITHDRAWALS: readonly [string, (payer: Payer) => Promise<unknown>][] = [
  ["the revocation of the key", ({ keyId }) => revokeKey(store.database, TEST_ACTION, keyId)],
  [
    "a report that the secret leaked",
    ({ accountId, fingerprint }) =>
      reportLeaks(store.database, TEST_ACTION, [{ lane: laneOfId(accountId), fingerprint, reason: "test" }]),
  ],
  ["the rotation of the secret", (payer) => rotateKey(store.database, TEST_ACTION, payer.keyId, newSecret(payer), 0)],
  ["fewer scopes", ({ keyId }) => updateKey(store.database, TEST_ACTION, keyId, { scopes: 2 })],
  ["fewer models", ({ keyId }) => updateKey(store.database, TEST_ACTION, keyId, { models: ["other"] })],
  ["fewer addresses", ({ keyId }) => updateKey(store.database, TEST_ACTION, keyId, { allowed_cidrs: ["192.0.2.0/24"] })],
  ["the suspension of the account", ({ accountId }) => setAccountSuspended(store.database, TEST_ACTION, accountId, true)],
  ["the closing of the account", ({ accountId }) => stepOfClosing(store.database, TEST_ACTION, accountId, CLOSING)],
  [
    "other prices of the account",
    ({ accountId }) =>
      setAccountPrices(store.database, TEST_ACTION, { accountId, model: "", discount: 5_000, prices: undefined }),
  ],
];

test.each(WITHDRAWALS)("%s waits for a hold that is being placed", async (what, withdraw) => {
  const payer = await createPayer(store.database, 100n);
  const billing = createTestBilling(store.database, { serverId: what });
  const id = newGenerationId(payer);
  let outcomes: Promise<unknown[]> | undefined;
  // The hold waits for the heartbeat of its server.
  await during("SELECT vx.heartbeat($1)", what, async () => {
    const hold = billing.hold(holdOf(payer, 60n, id));
    await untilWaiting(store, 1);
    outcomes = Promise.all([hold, withdraw(payer)]);
    await untilWaiting(store, 2);
  });
  expect(await outcomes).toMatchObject([{ outcome: "held" }, {}]);
  expect(await billing.hold(holdOf(payer, 1n))).toEqual({ outcome: "outdated" });
  await billing.end(endOf(payer, id, undefined));
});

test.each(WITHDRAWALS)("a hold waits for %s, and is not placed then", async (what, withdraw) => {
  const payer = await createPayer(store.database, 100n);
  const billing = createTestBilling(store.database, { serverId: what });
  let outcomes: Promise<unknown[]> | undefined;
  // The withdrawal waits for its event.
  await during("SELECT FROM vx.event_ends WHERE account_id = $1 FOR UPDATE", payer.accountId, async () => {
    const withdrawal = withdraw(payer);
    await untilWaiting(store, 1);
    outcomes = Promise.all([withdrawal, billing.hold(holdOf(payer, 60n))]);
    await untilWaiting(store, 2);
  });
  expect(await outcomes).toMatchObject([{}, { outcome: "outdated" }]);
});
