import { beforeAll, expect, test } from "vitest";
import { DatabaseClock } from "../../src/database/driver/database-clock.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { usageOf } from "../../src/domain/price.ts";
import { arrayOfHolds, type Charge } from "../../src/generations/bill-statement.ts";
import { Billing } from "../../src/generations/billing.ts";
import {
  createPayer,
  endOf,
  holdOf,
  moneyProblems,
  newGenerationId,
  type Payer,
  payerOf,
  placeHold,
  moneyOf as readMoney,
} from "../support/payer.ts";
import { createTestBilling, useStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";
import { UncheckedBilling } from "../support/unchecked-billing.ts";

const store = useStore();
/** Two servers. */
let billings: [Billing, Billing];
let unchecked: UncheckedBilling;

beforeAll(async () => {
  const options = { pipelines: 2, maxWaiting: 20_000 };
  billings = [createTestBilling(store.database, options), createTestBilling(store.database, { ...options, serverId: "two" })];
  unchecked = new UncheckedBilling(store.database, "one");
});

const moneyOf = (payer: Payer) => readMoney(store, payer);

test("a hold reserves its amount; its settlement charges the usage and appends one row of the hash chain", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const id = newGenerationId(payer);
  expect(await billings[0].hold(holdOf(payer, 600n, id))).toEqual({ outcome: "held" });
  expect(await moneyOf(payer)).toEqual({ balance: 1_000, held: 600, owed: 0 });
  expect(await billings[0].end(endOf(payer, id, 250n))).toEqual({ outcome: "settled", balanceMicros: 750n, chargedMicros: 250n });
  expect(await moneyOf(payer)).toEqual({ balance: 750, held: 0, owed: 0 });
  const rows = await store.owner`
    SELECT id, seq::int, kind, amount_micros::int, reason, model, price_version, input, n.name AS user, trace_id
    FROM vx.ledger JOIN vx.end_users n USING (lane, account_id, user_id) WHERE account_id = ${payer.accountId} AND seq > 1`;
  expect([...rows]).toEqual([
    {
      id: id.replace("gen_", "led_"),
      seq: 2,
      kind: "generation",
      amount_micros: -250,
      reason: 'Generation, "quoted" \\ and é…',
      model: "m",
      price_version: 1,
      input: 250,
      user: 'a "user" \\ é',
      trace_id: "",
    },
  ]);
  expect(await moneyProblems(store)).toEqual([]);
});

test("a settlement that is sent again, in the same batch or later, charges once and finds its row", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const id = await placeHold(billings[0], payer, 600n);
  const outcomes = await Promise.all([1, 2, 3].map(() => unchecked.end(endOf(payer, id, 250n))));
  outcomes.push(await unchecked.end(endOf(payer, id, 250n)));
  expect(outcomes).toEqual(Array(4).fill({ outcome: "settled", balanceMicros: 750n, chargedMicros: 250n }));
  expect(await moneyOf(payer)).toEqual({ balance: 750, held: 0, owed: 0 });
});

test.each(["alone", "with other items"])("an ending %s with the id of another account changes nothing", async (how) => {
  const payer = await createPayer(store.database, 1_000n);
  const lane = laneOfId(payer.accountId);
  const stranger = typeIds.generation(lane);
  const id = await placeHold(billings[0], payer, 600n);
  const end = { ...endOf(payer, id, 250n), accountId: stranger };
  const outcomes = await Promise.all((how === "alone" ? [end] : [end, end]).map((e) => unchecked.end(e)));
  expect(outcomes[0]).toEqual({ outcome: "missing" });
  expect(await moneyOf(payer)).toEqual({ balance: 1_000, held: 600, owed: 0 });
});

test("funds for 100 holds and 400 at once over two servers: exactly 100 are placed", async () => {
  const payer = await createPayer(store.database, 100n * 7n + 6n);
  const outcomes = await Promise.all(Array.from({ length: 400 }, (_, i) => (billings[i % 2] as Billing).hold(holdOf(payer, 7n))));
  expect(outcomes.filter(({ outcome }) => outcome === "held")).toHaveLength(100);
  expect(outcomes.find(({ outcome }) => outcome === "insufficient")).toMatchObject({ balanceMicros: 706n });
  expect(await moneyProblems(store)).toEqual([]);
});

test("retries of a call with a long answer do not fail the other holds of their batch", async () => {
  const [payer, other] = [await createPayer(store.database, 1_000n), await createPayer(store.database, 1_000n)];
  const idempotency = { key: "k", digest: "payload" };
  const id = newGenerationId(payer);
  const pipeline = createTestBilling(store.database, { maxWaiting: 1_000 });
  await pipeline.hold(holdOf(payer, 10n, id, idempotency));
  await pipeline.end(endOf(payer, id, 10n, "x".repeat(2_500_000)));
  const retries = Array.from({ length: 511 }, () => pipeline.hold(holdOf(payer, 10n, newGenerationId(payer), idempotency)));
  expect(await pipeline.hold(holdOf(other, 10n))).toEqual({ outcome: "held" });
  expect(await Promise.all(retries)).toEqual(retries.map(() => ({ outcome: "answered" })));
});

test("an idempotency key is held once, answered after that, refused for another payload, and used again after 24 hours", async () => {
  const payer = await createPayer(store.database, 100n);
  const ask = (digest: string, id = newGenerationId(payer)) => billings[1].hold(holdOf(payer, 10n, id, { key: "k", digest }));
  const id = newGenerationId(payer);
  expect(await ask("payload", id)).toEqual({ outcome: "held" });
  expect([await ask("payload"), await ask("another")]).toEqual([{ outcome: "running" }, { outcome: "reused" }]);
  await billings[1].end(endOf(payer, id, 10n, "answer"));
  expect([await ask("payload"), await ask("another")]).toEqual([{ outcome: "answered" }, { outcome: "reused" }]);
  await store.owner`UPDATE vx.answers SET created_at = created_at - interval '24 hours' WHERE account_id = ${payer.accountId}`;
  expect(await ask("payload")).toEqual({ outcome: "held" });
  expect(await store.database.call("sweep", laneOfId(payer.accountId))).toHaveLength(1);
});

test("a statement that arrives too late changes nothing and returns the time of the database", async () => {
  const payer = await createPayer(store.database, 100n);
  const lane = laneOfId(payer.accountId);
  const hold = holdOf(payer, 60n);
  const billAt = (notAfter: Date) =>
    store.database.call<{ kind: string; clock: Date }>(
      "bill",
      "one",
      notAfter,
      `{${lane}}`,
      "{}",
      arrayOfHolds([{ kind: "hold", lane, hold }]),
    );
  const [late, ...others] = await billAt(new Date(Date.now() - 1));
  expect([late?.kind, others]).toEqual(["late", []]);
  expect(Math.abs((late?.clock.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
  expect(await moneyOf(payer)).toEqual({ balance: 100, held: 0, owed: 0 });
  expect(await billAt(new Date(Date.now() + 60_000))).toMatchObject([{ kind: "hold", outcome: "held" }]);
  expect(await moneyOf(payer)).toEqual({ balance: 100, held: 60, owed: 0 });
  await billings[0].end(endOf(payer, hold.generationId, undefined));
});

test("a batch succeeds after the clock of the database is set forward", async () => {
  const behind = new DatabaseClock(() => performance.now());
  behind.set(new Date(Date.now() - 3_600_000), behind.now());
  const billing = new Billing(store.database, { pipelines: 1, maxWaiting: 10, serverId: "one", clocks: [behind] });
  const payer = await createPayer(store.database, 100n);
  const id = newGenerationId(payer);
  expect(await billing.hold(holdOf(payer, 60n, id))).toEqual({ outcome: "held" });
  expect(await billing.end(endOf(payer, id, 10n))).toMatchObject({ chargedMicros: 10n });
});

test("an item that violates a constraint fails alone, without the other items of its batch", async () => {
  const payers = await Promise.all([1, 2, 3, 4, 5].map(() => createPayer(store.database, 100n)));
  const ids = payers.map(newGenerationId);
  await Promise.all(payers.map((payer, i) => billings[0].hold(holdOf(payer, 60n, ids[i] as string))));
  const ends = payers.map((payer, i) => {
    const end = endOf(payer, ids[i] as string, 10n);
    return i === 3 ? { ...end, charge: { ...(end.charge as Charge), reason: "" } } : end;
  });
  const outcomes = await Promise.allSettled(ends.map((end) => billings[0].end(end)));
  expect(outcomes.map(({ status }) => status)).toEqual([0, 1, 2, 3, 4].map((i) => (i === 3 ? "rejected" : "fulfilled")));
  expect(await Promise.all(payers.map(moneyOf))).toEqual(
    [0, 1, 2, 3, 4].map((i) => (i === 3 ? { balance: 100, held: 60, owed: 0 } : { balance: 90, held: 0, owed: 0 })),
  );
  await billings[0].end(endOf(payers[3] as Payer, ids[3] as string, undefined));
});

test.each(Object.keys(usageOf({ inputTokens: 0, outputTokens: 0 })))(
  "the ledger refuses a negative count of %s",
  async (meter) => {
    const payer = await createPayer(store.database, 100n);
    const id = await placeHold(unchecked, payer, 60n);
    const end = endOf(payer, id, 10n);
    const charge = end.charge as Charge;
    const negative = unchecked.end({ ...end, charge: { ...charge, usage: { ...charge.usage, [meter]: -1 } } });
    await expect(negative).rejects.toMatchObject({ cause: { code: "23514" } });
    expect(await moneyOf(payer)).toEqual({ balance: 100, held: 60, owed: 0 });
  },
);

test("when a batch is split, an error of one part does not fail the items of another", async () => {
  const payers = await Promise.all([1, 2, 3].map(() => createPayer(store.database, 100n)));
  // Lanes are ascending in a batch, so the invalid hold is met first.
  payers.sort((a, b) => laneOfId(a.accountId) - laneOfId(b.accountId));
  const [invalid, unlucky, fine] = payers as Payer[] as [Payer, Payer, Payer];
  await store.owner.unsafe(`
    CREATE FUNCTION vx.fail_hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.account_id = '${invalid.accountId}' THEN RAISE 'invalid' USING ERRCODE = '22000'; END IF;
      IF NEW.account_id = '${unlucky.accountId}' THEN RAISE 'disk full' USING ERRCODE = '53100'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER fail_hold BEFORE INSERT ON vx.holds FOR EACH ROW EXECUTE FUNCTION vx.fail_hold()`);
  const billing = createTestBilling(store.database, { maxWaiting: 10 });
  const id = newGenerationId(fine);
  const holds = [fine, invalid, unlucky].map((payer) =>
    billing.hold(holdOf(payer, 60n, payer === fine ? id : newGenerationId(payer))),
  );
  const outcomes = await Promise.allSettled(holds);
  await store.owner`DROP FUNCTION vx.fail_hold CASCADE`;
  expect(outcomes).toMatchObject([
    { value: { outcome: "held" } },
    { reason: { reason: "internal" } },
    { reason: { reason: "unavailable" } },
  ]);
  expect(await moneyOf(fine)).toEqual({ balance: 100, held: 60, owed: 0 });
  await billing.end(endOf(fine, id, undefined));
});

test("a hold and an end that name an account that does not exist are errors, not outcomes", async () => {
  const accountId = typeIds.account();
  const nobody = payerOf(accountId, typeIds.key(laneOfId(accountId)));
  const id = newGenerationId(nobody);
  await expect(billings[0].hold(holdOf(nobody, 1n, id))).rejects.toMatchObject({ reason: "internal" });
  expect(await store.owner`SELECT FROM vx.holds WHERE id = ${id}`).toHaveLength(0);
  await store.owner`
    INSERT INTO vx.holds (lane, id, account_id, server_id, amount_micros, expires_at)
    VALUES (${laneOfId(accountId)}, ${id}, ${accountId}, 'one', 0, now() + interval '1 hour')`;
  await expect(unchecked.end(endOf(nobody, id, 1n))).rejects.toMatchObject({ reason: "internal" });
  await store.owner`DELETE FROM vx.holds WHERE id = ${id}`;
});
