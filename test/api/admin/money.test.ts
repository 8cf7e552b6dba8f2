import { describe, expect, test } from "vitest";
import { AdminService } from "../../../gen/vx/admin/v1/admin_pb.js";
import { useTestApp } from "../../support/app.ts";
import { createTestAccount, useOperator } from "../../support/fixtures.ts";
import { operatorCall } from "../../support/operator.ts";

const { creditAccount, adjustAccount } = AdminService.method;
const MAX_BALANCE = 9_000_000_000_000_000n;

const app = useTestApp();
const operator = useOperator(app);

async function accountWith(balance: bigint): Promise<string> {
  const accountId = await createTestAccount(operator);
  const request = { accountId, amountMicros: balance, reason: "start", idempotencyKey: "start" };
  if (balance > 0n) await operator.adjustAccount(request);
  return accountId;
}

async function balanceOf(accountId: string): Promise<bigint | undefined> {
  return (await operator.getAccount({ accountId })).account?.balanceMicros;
}

async function rowsOf(accountId: string): Promise<number> {
  return (await operator.listLedgerEntries({ accountId })).entries.length;
}

const call = operatorCall(app);
const move = (accountId: string, amountMicros: bigint, idempotencyKey = "1", reason = "invoice 1001") => ({
  accountId,
  amountMicros,
  reason,
  idempotencyKey,
});

test("a credit raises the balance and writes a ledger entry with the reason", async () => {
  const accountId = await accountWith(0n);
  expect(await call(creditAccount, move(accountId, 25_000_000n))).toMatchObject({
    message: {
      account: { balanceMicros: 25_000_000n, balance: "$25.00" },
      entry: { seq: 1n, kind: "credit", amountMicros: 25_000_000n, reason: "invoice 1001" },
    },
  });
});

test("an adjustment raises or lowers the balance, at least to zero", async () => {
  const accountId = await accountWith(10n);
  expect(await call(adjustAccount, move(accountId, 5n, "1"))).toMatchObject({
    message: { account: { balanceMicros: 15n }, entry: { kind: "adjustment", amountMicros: 5n } },
  });
  expect(await call(adjustAccount, move(accountId, -15n, "2"))).toMatchObject({
    message: { account: { balanceMicros: 0n }, entry: { amountMicros: -15n, balanceAfterMicros: 0n } },
  });
});

test("an adjustment below zero is rejected with the amounts and writes nothing", async () => {
  const accountId = await accountWith(10n);
  expect(await call(adjustAccount, move(accountId, -11n))).toMatchObject({
    code: "failed_precondition",
    reason: "insufficient_balance",
    metadata: {
      balance_micros: "10",
      held_micros: "0",
      available_micros: "10",
      required_micros: "11",
      shortage_micros: "1",
    },
  });
  expect([await balanceOf(accountId), await rowsOf(accountId)]).toEqual([10n, 1]);
});

test("an adjustment cannot subtract the amount that running calls hold", async () => {
  const accountId = await accountWith(100n);
  await app.database.owner`UPDATE vx.accounts SET held_micros = 60 WHERE id = ${accountId}`;
  expect(await call(adjustAccount, move(accountId, -41n, "1"))).toMatchObject({
    reason: "insufficient_balance",
    text: "The adjustment would take $0.000041, but only $0.00004 is free: the balance is $0.0001, running calls hold $0.00006.",
    metadata: { available_micros: "40", required_micros: "41", shortage_micros: "1" },
  });
  expect(await call(adjustAccount, move(accountId, -40n, "2"))).toMatchObject({
    message: { account: { balanceMicros: 60n, heldMicros: 60n } },
  });
});

describe.each([
  { name: "CreditAccount", method: creditAccount },
  { name: "AdjustAccount", method: adjustAccount as unknown as typeof creditAccount },
])("$name", ({ method }) => {
  test("two calls with one idempotency key change the balance once and return the same response", async () => {
    const accountId = await accountWith(0n);
    const [first, second] = [await call(method, move(accountId, 5n)), await call(method, move(accountId, 5n))];
    expect(first.ok && second.ok && second.message).toEqual(first.ok && first.message);
    expect([await balanceOf(accountId), await rowsOf(accountId)]).toEqual([5n, 1]);
  });

  test("a used idempotency key with another amount or reason is rejected", async () => {
    const accountId = await accountWith(0n);
    await call(method, move(accountId, 5n));
    for (const other of [move(accountId, 6n), move(accountId, 5n, "1", "invoice 1002")]) {
      expect(await call(method, other)).toMatchObject({
        code: "invalid_argument",
        reason: "idempotency_key_reused",
      });
    }
    expect([await balanceOf(accountId), await rowsOf(accountId)]).toEqual([5n, 1]);
  });

  test("an idempotency key belongs to its account", async () => {
    const [one, two] = [await accountWith(0n), await accountWith(0n)];
    await call(method, move(one, 5n));
    await call(method, move(two, 6n));
    expect([await balanceOf(one), await balanceOf(two)]).toEqual([5n, 6n]);
  });

  test("an unknown account is not found", async () => {
    expect(await call(method, move("acct_none", 5n))).toMatchObject({ reason: "not_found" });
  });

  test.each([
    { what: "an amount of 0", change: { amountMicros: 0n }, field: "amount_micros" },
    {
      what: "an amount above a billion",
      change: { amountMicros: 1_000_000_000_000_001n },
      field: "amount_micros",
    },
    {
      what: "the smallest 64-bit integer",
      change: { amountMicros: -9_223_372_036_854_775_808n },
      field: "amount_micros",
    },
    { what: "no reason", change: { reason: "" }, field: "reason" },
    { what: "a reason of 501 characters", change: { reason: "x".repeat(501) }, field: "reason" },
    { what: "a blank reason", change: { reason: " \u00a0\u200b " }, field: "reason" },
    { what: "a line break in the reason", change: { reason: "a\nb" }, field: "reason" },
    { what: "no idempotency key", change: { idempotencyKey: "" }, field: "idempotency_key" },
    { what: "a space in the idempotency key", change: { idempotencyKey: "a b" }, field: "idempotency_key" },
    {
      what: "an idempotency key of 256 characters",
      change: { idempotencyKey: "x".repeat(256) },
      field: "idempotency_key",
    },
    { what: "no account", change: { accountId: "" }, field: "account_id" },
  ])("$what is a 400 that names $field", async ({ change, field }) => {
    const accountId = await createTestAccount(operator);
    expect(await call(method, { ...move(accountId, 5n), ...change })).toMatchObject({
      reason: "invalid_argument",
      fields: [field],
    });
    expect(await rowsOf(accountId)).toBe(0);
  });
});

test("a credit that expires after the year 9999 is a 400", async () => {
  const accountId = await accountWith(0n);
  // The last nanoseconds of 9999 are rounded up to the next millisecond.
  const expiresAt = { seconds: 253_402_300_799n, nanos: 999_999_999 };
  expect(await call(creditAccount, { ...move(accountId, 5n), expiresAt })).toMatchObject({
    reason: "invalid_argument",
    fields: ["expires_at"],
  });
});

test("an adjustment of 0 says what is wrong", async () => {
  const outcome = await call(adjustAccount, move("acct_none", 0n));
  expect(outcome).toMatchObject({ text: "amount_micros: must not be 0" });
});

test("a credit with a negative amount is rejected", async () => {
  const accountId = await accountWith(10n);
  expect(await call(creditAccount, move(accountId, -5n))).toMatchObject({ fields: ["amount_micros"] });
  expect(await balanceOf(accountId)).toBe(10n);
});

test("an idempotency key of a credit cannot be used for an adjustment", async () => {
  const accountId = await accountWith(0n);
  await call(creditAccount, move(accountId, 5n));
  expect(await call(adjustAccount, move(accountId, 5n))).toMatchObject({
    reason: "idempotency_key_reused",
  });
});

test("an adjustment to zero can be repeated", async () => {
  const accountId = await accountWith(10n);
  await call(adjustAccount, move(accountId, -10n));
  expect(await call(adjustAccount, move(accountId, -10n))).toMatchObject({
    ok: true,
    message: { account: { balanceMicros: 0n }, entry: { seq: 2n } },
  });
});

test("a balance cannot exceed the exact integers of JSON readers", async () => {
  const accountId = await accountWith(0n);
  for (let i = 0; i < 9; i++) {
    const outcome = await call(creditAccount, move(accountId, MAX_BALANCE / 9n, `part-${i}`));
    expect(outcome.ok).toBe(true);
  }
  expect(await balanceOf(accountId)).toBe(MAX_BALANCE);
  expect(await call(creditAccount, move(accountId, 1n))).toMatchObject({
    reason: "invalid_argument",
    fields: ["amount_micros"],
  });
});
