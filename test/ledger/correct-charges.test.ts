import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { RerateRequestSchema, RerateResponse } from "../../gen/vx/admin/v1/admin_pb.js";
import { sendJson } from "../rest/send-json.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";

const file = createModelsFile(`
models:
  - id: m
    context_window: 100000
    max_output_tokens: 50
    prices: {input: 1000000, output: 2000000, request: 100}
    upstream: {kind: sandbox}
  - id: other
    context_window: 1000
    max_output_tokens: 50
    prices: {input: 1000000, output: 2000000}
    upstream: {kind: sandbox}
`);
const app = useOwnApp({ env: { VX_MODELS: file.path } });
const operator = useOperator(app);
let key: TestKey;
afterAll(() => file.remove());
beforeEach(async () => {
  key = await createTestKey(operator);
  await credit(100_000n);
});

async function credit(amountMicros: bigint, idempotencyKey = "1"): Promise<void> {
  await operator.creditAccount({ accountId: key.accountId, amountMicros, reason: "test", idempotencyKey });
}

async function generate(model = "m"): Promise<{ id: string; cost: bigint }> {
  const body = { model, messages: [{ role: "user", content: "[[tokens=2]] Hello" }], max_tokens: 2 };
  const answer = await sendJson(app.url, { verb: "POST", path: "/v1/generate", secret: key.secret, body });
  const { id, usage } = answer.body as { id: string; usage: { cost_micros: number } };
  return { id, cost: BigInt(usage.cost_micros) };
}

type Change = Omit<MessageInitShape<typeof RerateRequestSchema>, "$typeName">;
const at = (day: string) => timestampFromDate(new Date(day));

/** The row of the account of the key. */
async function rerate(change: Change): Promise<RerateResponse | undefined> {
  const request = { model: "m", from: at("2026-01-01"), to: at("2100-01-01"), reason: "wrong price", prices: {}, ...change };
  let own: RerateResponse | undefined;
  for await (const row of operator.rerate(request)) if (row.accountId === key.accountId) own = row;
  return own;
}

const movement = () => ({ accountId: key.accountId, reason: "empty reply", idempotencyKey: "a" });
const refund = (entryId: string, change: { amountMicros?: bigint; reason?: string; idempotencyKey?: string } = {}) =>
  operator.refundEntry({ ...movement(), entryId, ...change });

const balance = async () => (await operator.getAccount({ accountId: key.accountId })).account?.balanceMicros ?? 0n;
const ledger = async (kind: string) => (await operator.listLedgerEntries({ accountId: key.accountId, kind })).entries;
const findings = async () => (await operator.audit({})).findings;

test("a dry run counts, apply corrects each charge once by a linked adjustment, and a repeated one changes nothing", async () => {
  const charged = [await generate(), await generate()];
  await generate("other");
  const before = await balance();
  const prices = { input: 1_000_000n, output: 2_000_000n };
  const expected = { adjusted: 2n, creditMicros: 200n, debitMicros: 0n, refused: 0n, skipped: 0n };
  expect(await rerate({ prices })).toMatchObject(expected);
  expect(await balance()).toBe(before);
  expect(await rerate({ prices, apply: true })).toMatchObject(expected);
  expect(await balance()).toBe(before + 200n);
  const adjustments = await ledger("adjustment");
  expect(adjustments).toMatchObject(Array(2).fill({ amountMicros: 100n, reason: "wrong price" }));
  expect(new Set(adjustments.map(({ adjustedEntryId }) => adjustedEntryId))).toEqual(
    new Set(charged.map(({ id }) => id.replace("gen_", "led_"))),
  );
  expect(await rerate({ prices, apply: true })).toBeUndefined();
  expect(await rerate({ prices, apply: true, reason: "once more" })).toBeUndefined();
  expect(await balance()).toBe(before + 200n);
  expect(await findings()).toEqual([]);
  const answer = await sendJson(app.url, { verb: "GET", path: "/v1/ledger?kind=adjustment", secret: key.secret });
  expect(answer.body).toMatchObject({
    entries: [{ adjusted_entry_id: charged[1]?.id.replace("gen_", "led_"), amount_micros: 100 }, {}],
  });
});

test("a closed account is left out, with apply and without", async () => {
  await generate();
  await operator.closeAccount({ accountId: key.accountId, reason: "left", balance: "written_off" });
  const prices = { request: 60n };
  expect(await rerate({ prices })).toBeUndefined();
  expect(await rerate({ prices, apply: true })).toBeUndefined();
  expect(await balance()).toBe(0n);
});

test("a repeated re-rating does not take back what was refunded after it", async () => {
  const { id, cost } = await generate();
  const before = await balance();
  const prices = { request: 60n };
  await rerate({ prices, apply: true });
  await refund(id, { amountMicros: 10n });
  expect(await rerate({ prices, apply: true })).toBeUndefined();
  expect(await balance()).toBe(before + cost - 50n);
});

test.each([
  { refunded: 0n, price: 80n, change: 20n },
  { refunded: 100n, price: 80n, change: 0n },
  { refunded: 90n, price: 80n, change: 10n },
  { refunded: 40n, price: 80n, change: 20n },
  { refunded: 40n, price: 120n, change: -20n },
])("a re-rating from 100 to $price after a refund of $refunded takes nothing of it back", async (row) => {
  const { id } = await generate();
  await rerate({ prices: { request: 100n }, apply: true });
  if (row.refunded > 0n) await refund(id, { amountMicros: row.refunded });
  const before = await balance();
  await rerate({ prices: { request: row.price }, apply: true });
  expect(await balance()).toBe(before + row.change);
  expect(await rerate({ prices: { request: row.price }, reason: "once more" })).toBeUndefined();
});

test("concurrent re-ratings correct each charge once", async () => {
  for (let i = 0; i < 5; i++) await generate();
  const before = await balance();
  const prices = { input: 1_000_000n, output: 2_000_000n };
  await Promise.all([1, 2, 3].map(() => rerate({ prices, apply: true })));
  expect(await balance()).toBe(before + 500n);
  expect(await ledger("adjustment")).toHaveLength(5);
});

test("the discount at the time of the call applies to the new prices", async () => {
  const request = { accountId: key.accountId, reason: "contract" };
  await operator.setAccountPrices({ ...request, change: { case: "discountBps", value: 5_000 } });
  const { cost } = await generate();
  await operator.setAccountPrices({ ...request, change: { case: "discountBps", value: 9_000 } });
  const before = await balance();
  await rerate({ prices: { request: 40n }, apply: true });
  expect(await balance()).toBe(before + cost - 20n);
  expect(await findings()).toEqual([]);
});

test("charges at the account's own prices are skipped", async () => {
  const own = { case: "prices", value: { request: 70n } } as const;
  await operator.setAccountPrices({ accountId: key.accountId, model: "m", change: own, reason: "contract" });
  await generate();
  expect(await rerate({ prices: {}, apply: true })).toMatchObject({ adjusted: 0n, skipped: 1n });
});

test("later prices are compared with the charge after earlier corrections", async () => {
  const { cost } = await generate();
  const before = await balance();
  await rerate({ prices: { request: 50n }, apply: true });
  expect(await balance()).toBe(before + cost - 50n);
  expect(await rerate({ prices: { request: 80n }, apply: true })).toMatchObject({ creditMicros: 0n, debitMicros: 30n });
  expect(await balance()).toBe(before + cost - 80n);
});

test("what the balance does not cover is refused and listed, never below zero", async () => {
  await generate();
  const { cost } = await generate();
  const spent = (await balance()) - 1_000n;
  await operator.adjustAccount({ ...movement(), amountMicros: -spent });
  const prices = { request: cost + 700n };
  const expected = { adjusted: 1n, debitMicros: 700n, refused: 1n, refusedMicros: 700n };
  expect(await rerate({ prices })).toMatchObject(expected);
  expect(await rerate({ prices, apply: true })).toMatchObject(expected);
  expect(await balance()).toBe(300n);
  await credit(10_000n, "3");
  expect(await rerate({ prices, apply: true })).toMatchObject({ adjusted: 1n, debitMicros: 700n, refused: 0n });
  expect(await balance()).toBe(9_600n);
  expect(await findings()).toEqual([]);
});

test("limits are not changed", async () => {
  const limit = { metric: "cost", window: "day", amount: 10_000n };
  const owner = { case: "accountId", value: key.accountId } as const;
  await operator.setLimit({ owner, limit, reason: "test" });
  const { cost } = await generate();
  await rerate({ prices: {}, apply: true });
  const { limits } = await operator.listLimits({ owner });
  expect(limits.find(({ metric, window }) => metric === "cost" && window === "day")?.spent).toBe(cost);
  expect(await findings()).toEqual([]);
});

test("refunds of an entry never exceed its charge", async () => {
  const { id, cost } = await generate();
  const before = await balance();
  const first = await refund(id, { amountMicros: 40n });
  const adjustedEntryId = id.replace("gen_", "led_");
  expect(first.entry).toMatchObject({ kind: "adjustment", amountMicros: 40n, adjustedEntryId });
  const b = { idempotencyKey: "b" };
  await expect(refund(id, { ...b, amountMicros: cost - 39n })).rejects.toThrow("can be refunded");
  await expect(refund(first.entry?.id ?? "", b)).rejects.toThrow("no charged generation");
  expect((await refund(id, { idempotencyKey: "c" })).entry?.amountMicros).toBe(cost - 40n);
  await expect(refund(id, b)).rejects.toThrow("can be refunded");
  expect(await balance()).toBe(before + cost);
  expect(await rerate({ prices: {} })).toBeUndefined();
  expect(await findings()).toEqual([]);
});

test("a key refunds once, and is refused with another charge, amount or reason, or for another movement", async () => {
  const { id, cost } = await generate();
  const before = await balance();
  const part = { amountMicros: 40n };
  const { entry } = await refund(id, part);
  expect((await refund(id, part)).entry?.id).toBe(entry?.id);
  for (const change of [{ amountMicros: 1n }, { amountMicros: 0n }, { ...part, reason: "late" }])
    await expect(refund(id, change)).rejects.toThrow("another movement");
  const other = await generate();
  await expect(refund(other.id, part)).rejects.toThrow("another movement");
  await expect(refund(id, { ...part, idempotencyKey: "1" })).rejects.toThrow("another movement");
  for (const method of ["creditAccount", "adjustAccount"] as const)
    await expect(operator[method]({ ...movement(), ...part })).rejects.toThrow("another movement");
  const all = { idempotencyKey: "all" };
  const rest = await refund(id, all);
  expect((await refund(id, all)).entry?.id).toBe(rest.entry?.id);
  await expect(refund(id, { ...all, amountMicros: cost - 40n })).rejects.toThrow("another movement");
  expect(await balance()).toBe(before + cost - other.cost);
  expect(await findings()).toEqual([]);
});

test.each<[Change, string]>([
  [{ model: "none" }, "none"],
  [{ to: at("2026-01-01") }, "from"],
  [{ prices: { input: -1n } }, "prices.input"],
])("refuses the unknown model, empty range or wrong price %o", async (change, message) => {
  await expect(rerate(change)).rejects.toThrow(message);
});
