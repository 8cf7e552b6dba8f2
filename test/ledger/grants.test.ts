import fc from "fast-check";
import { expect, test } from "vitest";
import { expireGrants, getAccount, readGrants } from "../../src/accounts/store.ts";
import { audit } from "../../src/audit/store.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { arrayOfEnds, arrayOfHolds } from "../../src/generations/bill-statement.ts";
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

const store = useOwnStore({ connections: 4 });
const DAY_MS = 86_400_000;

/** A credit that expires after some days; without days, it does not expire. */
const grant = ({ accountId }: Payer, micros: bigint, days?: number, isPromotional = false) =>
  move(store.database, accountId, micros, {
    expiresAt: days === undefined ? undefined : new Date(Date.now() + days * DAY_MS),
    isPromotional,
  });

/** Days pass, for one account: credits that expire meanwhile expire now; the server takes them within a second. */
async function pass({ accountId }: Payer, days: number): Promise<void> {
  const { owner } = store;
  const passed = `${days} days`;
  await owner`
    UPDATE vx.grants SET expires_at = greatest(expires_at - ${passed}::interval, now())
    WHERE account_id = ${accountId} AND expires_at > now()`;
  await owner`
    UPDATE vx.accounts SET grants_expire_at = (
      SELECT min(expires_at) FROM vx.grants WHERE account_id = ${accountId} AND rest_micros > 0) WHERE id = ${accountId}`;
}

const restsOf = async ({ accountId }: Payer) =>
  (await readGrants(store.database, await getAccount(store.database, accountId))).grants.map((row) => Number(row.rest_micros));

const rowsOf = (payer: Payer) => entriesOf(store, payer);

async function findings(): Promise<string[]> {
  const report = await audit(store.database, new AbortController().signal);
  return report.findings.map(({ rule, detail }) => `${rule}: ${detail}`);
}

test("charges take credit that expires first, then promotional credit, then the rest", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 100n);
  await grant(payer, 50n, undefined, true);
  await grant(payer, 30n, 9);
  await grant(payer, 20n, 3);
  expect(await restsOf(payer)).toEqual([20, 30, 50]);
  await charge(billing, payer, 25n);
  expect(await restsOf(payer)).toEqual([25, 50]);
  await charge(billing, payer, 25n);
  expect(await restsOf(payer)).toEqual([50]);
  await charge(billing, payer, 60n);
  expect(await restsOf(payer)).toEqual([]);
  await charge(billing, payer, 90n);
  expect(await moneyProblems(store)).toEqual([]);
});

test("what an account owes is paid from a credit that expires", async () => {
  const payer = await createPayer(store.database, 0n);
  await store.owner`UPDATE vx.accounts SET owed_micros = 30 WHERE id = ${payer.accountId}`;
  await grant(payer, 100n, 3);
  expect(await restsOf(payer)).toEqual([70]);
  expect(await rowsOf(payer)).toEqual([
    ["credit", 100],
    ["refund", -30],
  ]);
});

test("what is owed while calls hold the balance is taken from what expires last, as the audit expects", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 0n);
  await grant(payer, 50n, undefined, true);
  await placeHold(billing, payer, 50n);
  await store.owner`UPDATE vx.accounts SET owed_micros = 30 WHERE id = ${payer.accountId}`;
  await grant(payer, 100n, 3);
  expect(await restsOf(payer)).toEqual([100, 20]);
  expect(await findings()).toEqual([]);
});

test("a charge takes the credit that expires first, also after a release in the same batch", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 100n);
  await grant(payer, 100n, 3);
  const [one, two] = [await placeHold(billing, payer, 50n), await placeHold(billing, payer, 50n)];
  const lane = laneOfId(payer.accountId);
  const ends = [endOf(payer, one, undefined), endOf(payer, two, 50n)];
  const items = arrayOfEnds(ends.map((end) => ({ kind: "end", lane, end })));
  await store.database.call("bill", "one", null, `{${lane}}`, items, arrayOfHolds([]));
  expect(await restsOf(payer)).toEqual([50]);
  expect(await findings()).toEqual([]);
});

test("on expiry the rest leaves as a row of its own, with an event; what running calls hold leaves when they end", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 0n);
  await grant(payer, 100n, 3);
  await grant(payer, 50n, 9);
  const [one, two] = [await placeHold(billing, payer, 80n), await placeHold(billing, payer, 40n)];
  await pass(payer, 5);
  await expireGrants(store.database);
  expect(await rowsOf(payer)).toEqual([
    ["credit", 100],
    ["credit", 50],
    ["expiry", -30],
  ]);
  await expireGrants(store.database);
  await billing.end(endOf(payer, one, 10n));
  expect(await restsOf(payer)).toEqual([50]);
  await billing.end(endOf(payer, two, undefined));
  expect((await rowsOf(payer)).slice(3)).toEqual([
    ["generation", -10],
    ["expiry", -60],
  ]);
  const events = await store.owner`
    SELECT (data->>'amount_micros')::int AS amount, (data->>'balance_after_micros')::int AS balance FROM vx.events
    WHERE account_id = ${payer.accountId} AND type = 'grant.expired' ORDER BY seq`;
  expect(events).toEqual([
    { amount: 30, balance: 120 },
    { amount: 60, balance: 50 },
  ]);
});

test("what has expired cannot be held, also before it has left the balance", async () => {
  const billing = createTestBilling(store.database);
  const payer = await createPayer(store.database, 10n);
  await grant(payer, 100n, 3);
  await pass(payer, 5);
  const hold = (micros: bigint) => holdOf(payer, micros);
  expect(await billing.hold(hold(11n))).toMatchObject({ outcome: "insufficient" });
  expect(await billing.quoteHold(hold(11n))).toMatchObject({ outcome: "insufficient", balanceMicros: 10n });
  await charge(billing, payer, 10n);
  // The charge took from the expired credit, and the rest of it left with the end of the call.
  expect((await rowsOf(payer)).slice(2)).toEqual([
    ["generation", -10],
    ["expiry", -90],
  ]);
  expect(await billing.hold(hold(11n))).toMatchObject({ outcome: "insufficient" });
  expect(await billing.hold(hold(10n))).toMatchObject({ outcome: "held" });
});

test("what an abandoned hold releases expires too", async () => {
  const payer = await createPayer(store.database, 0n);
  await grant(payer, 100n, 3);
  const billing = createTestBilling(store.database, { serverId: "gone" });
  await placeHold(billing, payer, 100n);
  await pass(payer, 5);
  await expireGrants(store.database);
  expect(await rowsOf(payer)).toHaveLength(1);
  await store.owner`DELETE FROM vx.servers WHERE id = 'gone'`;
  await store.database.call("sweep", laneOfId(payer.accountId));
  expect((await rowsOf(payer)).at(-1)).toEqual(["expiry", -100]);
});

test("an idempotency key posts one credit, and refuses another expiry", async () => {
  const { accountId } = await createPayer(store.database, 0n);
  const expiresAt = new Date(Date.now() + DAY_MS);
  const post = (changes: Partial<Parameters<typeof move>[3]>) =>
    move(store.database, accountId, 5n, { idempotencyKey: "once", ...changes });
  const first = await post({ expiresAt });
  expect(await post({ expiresAt })).toMatchObject({ id: first.id });
  await expect(post({})).rejects.toMatchObject({ reason: "idempotency_key_reused" });
  await expect(post({ expiresAt, isPromotional: true })).rejects.toMatchObject({ reason: "idempotency_key_reused" });
});

test("an expiry in the past, and more than 100 credits that expire, are refused", async () => {
  const payer = await createPayer(store.database, 99n);
  const { accountId } = payer;
  const { owner } = store;
  await expect(grant(payer, 1n, -1)).rejects.toMatchObject({ reason: "invalid_argument" });
  // The database takes seconds to post as many.
  await owner`
    INSERT INTO vx.grants SELECT lane, id, now() + interval '1 day', i + 1, 'led_' || i, 1, 1, false
    FROM vx.accounts, generate_series(1, 99) i WHERE id = ${accountId}`;
  await owner`UPDATE vx.accounts SET grants_expire_at = now() + interval '1 day' WHERE id = ${accountId}`;
  await grant(payer, 1n, 9);
  await expect(grant(payer, 1n, 9)).rejects.toMatchObject({ reason: "invalid_argument" });
  expect(await rowsOf(payer)).toHaveLength(2);
  await owner`DELETE FROM vx.grants WHERE account_id = ${accountId} AND expires_at < now() + interval '2 days'`;
  await owner`
    UPDATE vx.accounts SET grants_expire_at = (SELECT expires_at FROM vx.grants WHERE account_id = ${accountId}) WHERE id = ${accountId}`;
});

test("the audit finds a wrong rest, a wrong next expiry, and charges and expiries at the wrong time", async () => {
  const payer = await createPayer(store.database, 0n);
  const { accountId } = payer;
  const { owner } = store;
  await grant(payer, 100n, 3);
  await charge(createTestBilling(store.database), payer, 40n);
  expect(await findings()).toEqual([]);
  await owner`UPDATE vx.accounts SET grants_spent_micros = 39 WHERE id = ${accountId}`;
  const wrongRest = "grants_match_ledger: 61 is left of the credit of row 1, the ledger leaves 60";
  expect(await findings()).toEqual(["balance_covers_grants: balance 60, grants add up to 61", wrongRest]);
  await owner`UPDATE vx.accounts SET grants_spent_micros = 40 WHERE id = ${accountId}`;
  await owner`UPDATE vx.accounts SET grants_expire_at = NULL WHERE id = ${accountId}`;
  expect(await findings()).toEqual([expect.stringMatching(/^next_expiry_known: next expiry , that of/)]);
  // As if a charge had taken from a credit that had expired long before.
  await owner`UPDATE vx.grants SET expires_at = expires_at - interval '4 days' WHERE account_id = ${accountId}`;
  await owner`
    UPDATE vx.accounts SET grants_expire_at = (SELECT expires_at FROM vx.grants WHERE account_id = ${accountId})
    WHERE id = ${accountId}`;
  expect(await findings()).toEqual([
    "expired_grant_not_spent: charges after row 1 took 40 from the credit of row 1, which had expired",
  ]);
  await expireGrants(store.database);
  await owner`UPDATE vx.grants SET expires_at = expires_at + interval '9 days' WHERE account_id = ${accountId}`;
  expect(await findings()).toEqual(["grant_expires_in_time: row 3 is the expiry of the credit of row 1, which had not expired"]);
  await owner`
    UPDATE vx.grants SET expires_at = (SELECT max(created_at) FROM vx.ledger WHERE account_id = ${accountId})
    WHERE account_id = ${accountId}`;
  expect(await findings()).toEqual([]);
});

type Model = { balance: number; held: number; grants: { day: number; seq: number; rest: number; isExpired: boolean }[] };

/** The plain rules, against which the database is compared. */
function spend(model: Model, amount: number): void {
  let left = amount;
  for (const one of model.grants) {
    const part = Math.min(one.rest, left);
    one.rest -= part;
    left -= part;
  }
}

function expire(model: Model): void {
  for (const one of model.grants.filter(({ isExpired }) => isExpired)) {
    const part = Math.min(one.rest, model.balance - model.held);
    one.rest -= part;
    model.balance -= part;
  }
}

function cut(model: Model): void {
  let excess = model.grants.reduce((sum, { rest }) => sum + rest, 0) - model.balance;
  for (const one of model.grants.toReversed()) {
    const part = Math.max(0, Math.min(one.rest, excess));
    one.rest -= part;
    excess -= part;
  }
}

const amount = fc.integer({ min: 1, max: 100 });
const step = fc.oneof(
  fc.record({ do: fc.constant("credit" as const), amount, day: fc.integer({ min: 0, max: 3 }) }),
  fc.record({ do: fc.constant("hold" as const), amount }),
  fc.record({ do: fc.constant("end" as const), share: fc.integer({ min: 0, max: 4 }) }),
  fc.record({ do: fc.constant("adjust" as const), amount }),
  fc.record({ do: fc.constant("pass" as const), isTaken: fc.boolean() }),
);

test("whatever happens in whatever order, the rests are those of the plain rules, and the audit agrees", async () => {
  const billing = createTestBilling(store.database);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const payer = await createPayer(store.database, 0n);
      const model: Model = { balance: 0, held: 0, grants: [] };
      const open: { id: string; amount: number }[] = [];
      let day = 0;
      for (const [seq, one] of steps.entries()) {
        if (one.do === "credit") {
          model.balance += one.amount;
          if (one.day === 0) await credit(store.database, payer.accountId, BigInt(one.amount));
          else {
            await grant(payer, BigInt(one.amount), 10 * one.day - 1);
            model.grants.push({ day: day + one.day, seq, rest: one.amount, isExpired: false });
            model.grants.sort((a, b) => a.day - b.day || a.seq - b.seq);
          }
        } else if (one.do === "hold") {
          const id = newGenerationId(payer);
          const expired = model.grants.reduce((sum, { rest, isExpired }) => sum + (isExpired ? rest : 0), 0);
          const fits = one.amount <= Math.max(model.held, model.balance - expired) - model.held;
          const { outcome } = await billing.hold(holdOf(payer, BigInt(one.amount), id));
          expect(outcome).toBe(fits ? "held" : "insufficient");
          if (fits) {
            model.held += one.amount;
            open.push({ id, amount: one.amount });
          }
        } else if (one.do === "end") {
          const ended = open.shift();
          if (!ended) continue;
          const charged = Math.floor((ended.amount * one.share) / 4);
          await billing.end(endOf(payer, ended.id, one.share === 0 ? undefined : BigInt(charged)));
          model.held -= ended.amount;
          model.balance -= charged;
          spend(model, charged);
          expire(model);
        } else if (one.do === "adjust") {
          if (model.balance - one.amount < model.held) continue;
          await move(store.database, payer.accountId, BigInt(-one.amount));
          model.balance -= one.amount;
          cut(model);
        } else {
          day++;
          await pass(payer, 10);
          for (const grantOfDay of model.grants) grantOfDay.isExpired = grantOfDay.day <= day;
          if (one.isTaken) {
            await expireGrants(store.database);
            expire(model);
          }
        }
        expect(await moneyOf(store, payer)).toEqual({ balance: model.balance, held: model.held, owed: 0 });
        expect(await restsOf(payer)).toEqual(model.grants.map(({ rest }) => rest).filter((rest) => rest > 0));
      }
      for (const { id } of open) await billing.end(endOf(payer, id, undefined));
    }),
    { numRuns: runs(12) },
  );
  expect(await moneyProblems(store)).toEqual([]);
  expect(await findings()).toEqual([]);
});
