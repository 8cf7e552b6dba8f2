import { expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { useTestApp } from "../support/app.ts";
import { createTestAccount, useOperator } from "../support/fixtures.ts";
import { operatorCall } from "../support/operator.ts";

const { creditAccount, adjustAccount } = AdminService.method;
const MAX_BALANCE = 9_000_000_000_000_000n;

const app = useTestApp();
const operator = useOperator(app);
const call = operatorCall(app);
const METHODS = [creditAccount, adjustAccount as unknown as typeof creditAccount];

async function accountWith(balance: bigint): Promise<string> {
  const accountId = await createTestAccount(operator);
  const request = { accountId, amountMicros: balance, reason: "start", idempotencyKey: "start" };
  if (balance > 0n) await operator.adjustAccount(request);
  return accountId;
}

/** The balance, and the number of entries. */
async function stateOf(accountId: string) {
  const { account } = await operator.getAccount({ accountId });
  return [account?.balanceMicros, (await operator.listLedgerEntries({ accountId })).entries.length];
}

const move = (accountId: string, amountMicros: bigint, idempotencyKey = "1", reason = "invoice 1001") => ({
  ...{ accountId, amountMicros, reason, idempotencyKey },
});

test("a credit raises the balance and writes a ledger entry with the reason", async () => {
  const accountId = await accountWith(0n);
  const entry = { seq: 1n, kind: "credit", amountMicros: 25_000_000n, reason: "invoice 1001" };
  expect(await call(creditAccount, move(accountId, 25_000_000n))).toMatchObject({
    message: { account: { balanceMicros: 25_000_000n, balance: "$25.00" }, entry },
  });
});

test("an adjustment raises or lowers the balance, at least to zero, and can be repeated", async () => {
  const accountId = await accountWith(10n);
  expect(await call(adjustAccount, move(accountId, 5n, "1"))).toMatchObject({
    message: { account: { balanceMicros: 15n }, entry: { kind: "adjustment", amountMicros: 5n } },
  });
  const last = { amountMicros: -15n, balanceAfterMicros: 0n, seq: 3n };
  for (let i = 0; i < 2; i++)
    expect(await call(adjustAccount, move(accountId, -15n, "2"))).toMatchObject({
      message: { account: { balanceMicros: 0n }, entry: last },
    });
});

test("an adjustment below what running calls leave is rejected with the amounts and writes nothing", async () => {
  const accountId = await accountWith(100n);
  await app.database.owner`UPDATE vx.accounts SET held_micros = 60 WHERE id = ${accountId}`;
  const amounts = {
    balance_micros: "100",
    held_micros: "60",
    available_micros: "40",
    required_micros: "41",
    shortage_micros: "1",
  };
  expect(await call(adjustAccount, move(accountId, -41n, "1"))).toMatchObject({
    code: "failed_precondition",
    reason: "insufficient_balance",
    text: "The adjustment would take $0.000041, but only $0.00004 is free: the balance is $0.0001, running calls hold $0.00006.",
    metadata: amounts,
  });
  expect(await stateOf(accountId)).toEqual([100n, 1]);
  expect(await call(adjustAccount, move(accountId, -40n, "2"))).toMatchObject({
    message: { account: { balanceMicros: 60n, heldMicros: 60n } },
  });
});

test.each(METHODS)("an idempotency key of $name moves the balance of its account once", async (method) => {
  const [one, two] = [await accountWith(0n), await accountWith(0n)];
  const [first, second] = [await call(method, move(one, 5n)), await call(method, move(one, 5n))];
  expect(first).toMatchObject({ ok: true });
  expect(second.ok && second.message).toEqual(first.ok && first.message);
  const [otherMethod] = METHODS.filter((other) => other !== method);
  const others = [move(one, 6n), move(one, 5n, "1", "invoice 1002")].map((other) => [method, other] as const);
  for (const [changed, other] of [...others, [otherMethod ?? method, move(one, 5n)] as const])
    expect(await call(changed, other)).toMatchObject({ code: "invalid_argument", reason: "idempotency_key_reused" });
  await call(method, move(two, 6n));
  expect([await stateOf(one), await stateOf(two)]).toEqual([
    [5n, 1],
    [6n, 1],
  ]);
});

const REFUSED: [what: string, change: Partial<ReturnType<typeof move>>, field: string][] = [
  ["an amount of 0", { amountMicros: 0n }, "amount_micros"],
  ["an amount above a billion", { amountMicros: 1_000_000_000_000_001n }, "amount_micros"],
  ["the smallest 64-bit integer", { amountMicros: -9_223_372_036_854_775_808n }, "amount_micros"],
  ["no reason", { reason: "" }, "reason"],
  ["a reason of 501 characters", { reason: "x".repeat(501) }, "reason"],
  ["a blank reason", { reason: " \u00a0\u200b " }, "reason"],
  ["a line break in the reason", { reason: "a\nb" }, "reason"],
  ["no idempotency key", { idempotencyKey: "" }, "idempotency_key"],
  ["a space in the idempotency key", { idempotencyKey: "a b" }, "idempotency_key"],
  ["an idempotency key of 256 characters", { idempotencyKey: "x".repeat(256) }, "idempotency_key"],
  ["no account", { accountId: "" }, "account_id"],
];
test.each(REFUSED)("%s is a 400 that names the field", async (_, change, field) => {
  const accountId = await createTestAccount(operator);
  for (const method of METHODS)
    expect(await call(method, { ...move(accountId, 5n), ...change })).toMatchObject({
      reason: "invalid_argument",
      fields: [field],
    });
  expect(await stateOf(accountId)).toEqual([0n, 0]);
});

test("an unknown account is not found, a credit is positive and ends before the year 10000", async () => {
  for (const method of METHODS) expect(await call(method, move("acct_none", 5n))).toMatchObject({ reason: "not_found" });
  expect(await call(adjustAccount, move("acct_none", 0n))).toMatchObject({ text: "amount_micros: must not be 0" });
  expect(await call(creditAccount, move("acct_none", -5n))).toMatchObject({ fields: ["amount_micros"] });
  // The last nanoseconds of 9999 are rounded up to the next millisecond.
  const expiresAt = { seconds: 253_402_300_799n, nanos: 999_999_999 };
  expect(await call(creditAccount, { ...move(await accountWith(0n), 5n), expiresAt })).toMatchObject({ fields: ["expires_at"] });
});

test("a balance cannot exceed the exact integers of JSON readers", async () => {
  const accountId = await accountWith(0n);
  for (let i = 0; i < 9; i++) expect((await call(creditAccount, move(accountId, MAX_BALANCE / 9n, `part-${i}`))).ok).toBe(true);
  expect(await call(creditAccount, move(accountId, 1n))).toMatchObject({ reason: "invalid_argument", fields: ["amount_micros"] });
  expect(await stateOf(accountId)).toEqual([MAX_BALANCE, 9]);
});
