import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeEach, expect, test } from "vitest";
import { AdminService, type SetAccountPricesRequestSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { sendJson } from "../rest/send-json.ts";
import { startTestApp, useOwnApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { operatorCall } from "../support/operator.ts";
import { started } from "../support/started.ts";

const file = createModelsFile(`
models:
  - id: m
    aliases: [alias]
    context_window: 100000
    max_output_tokens: 50
    prompt_overhead_tokens: {base: 0, per_message: 0}
    prices:
      {input: 1000000, cached_input: 333333, cache_write: 1250000, cache_write_1h: 2000000, output: 2000000, image: 7, request: 3,
       tiers: [{above_input_tokens: 100, input: 4000000, output: 8000000}]}
    upstream: {kind: sandbox}
  - id: other
    context_window: 1000
    max_output_tokens: 50
    prices: {input: 1000001, output: 2000000}
    upstream: {kind: sandbox}
`);
const env = { VX_MODELS: file.path };
const app = useOwnApp({ env });
/** Another server on the same database. */
const second = started(() => startTestApp({ env, database: app.database }));
const operator = useOperator(app);
const call = operatorCall(app);
let key: TestKey;

afterAll(() => file.remove());
beforeEach(async () => {
  key = await createTestKey(operator);
  await credit(1_000_000n);
});

async function credit(amountMicros: bigint): Promise<void> {
  const once = { reason: "test", idempotencyKey: String(amountMicros) };
  await operator.creditAccount({ accountId: key.accountId, amountMicros, ...once });
}

type Change = NonNullable<MessageInitShape<typeof SetAccountPricesRequestSchema>["change"]>;

const discountOf = (value: number): Change => ({ case: "discountBps", value });

async function set(change: Change | undefined, model = ""): Promise<number> {
  const request = { accountId: key.accountId, model, reason: "contract 7", ...(change && { change }) };
  return (await operator.setAccountPrices(request)).prices?.version ?? 0;
}

type Json = Record<string, unknown>;

async function read(path: string, from = app): Promise<Json> {
  const { status, body } = await sendJson(from.url, { verb: "GET", path, secret: key.secret });
  expect(status).toBe(200);
  return body as Json;
}

async function generate(content: string, from = app, path = "/v1/generate"): Promise<Json> {
  const body = { model: "m", messages: [{ role: "user", content }], max_tokens: 2 };
  return (await sendJson(from.url, { verb: "POST", path, secret: key.secret, body })).body as Json;
}

const pricesOf = async (model: string, from = app) => (await read(`/v1/models/${model}`, from)).prices;

async function lastEntry(): Promise<Json> {
  return ((await read("/v1/ledger?page_size=1")).entries as Json[])[0] ?? {};
}

test("a discount is taken off each price of all tiers, rounded up to a micro, for this account alone", async () => {
  const before = await pricesOf("m");
  expect(await set(discountOf(1_550))).toBe(1);
  const expected = {
    ...{ input: 845_000, cached_input: 281_667, cache_write: 1_056_250, cache_write_1h: 1_690_000 },
    ...{ output: 1_690_000, reasoning: 1_690_000, image: 6, request: 3 },
    tiers: [expect.objectContaining({ above_input_tokens: 100, input: 3_380_000, output: 6_760_000, image: 6 })],
  };
  expect(await pricesOf("m")).toEqual(expected);
  expect(await pricesOf("other")).toMatchObject({ input: 845_001 });
  const { data } = (await read("/v1/models")) as { data: Json[] };
  expect(data.find(({ id }) => id === "m")).toMatchObject({
    input_micros_per_million_tokens: 845_000,
    output_micros_per_million_tokens: 1_690_000,
    prices: expected,
  });
  key = await createTestKey(operator);
  expect(await pricesOf("m")).toEqual(before);
});

test("hold, quote, charge and ledger entry have the prices of the account, which the next call on any server has", async () => {
  const prompt = `[[tokens=2]]${"x".repeat(84)}`;
  const quoted = async (from = app) => (await generate(prompt, from, "/v1/generate:quote")).hold_micros;
  // 100 bytes at the price of a cache write for an hour, and two tokens.
  expect(await quoted()).toBe(200 + 4 + 3);
  const listed = (await generate(prompt)).usage as Json;
  await set(discountOf(5_000), "alias");
  for (const from of [second, app]) {
    expect(await quoted(from)).toBe(100 + 2 + 2);
    const { usage } = (await generate(prompt, from)) as { usage: Json };
    const input = Number(usage.input_tokens);
    expect(usage.cost_micros).toBe(Math.ceil((input * 500_000 + 2 * 1_000_000) / 1_000_000) + 2);
    expect(usage.cost_micros).toBeLessThan(Number(listed.cost_micros));
    expect(await lastEntry()).toMatchObject({
      amount_micros: -Number(usage.cost_micros),
      price_version: 1,
      price_list_version: 1,
      price_tier: 0,
      prices: { input: 500_000, output: 1_000_000, request: 2 },
    });
  }
  expect(await operator.audit({})).toMatchObject({ consistent: true });
});

test("a balance that covers only the discounted hold is enough", async () => {
  key = await createTestKey(operator);
  await credit(40n);
  const prompt = `[[tokens=2]]${"x".repeat(84)}`;
  expect(await generate(prompt)).toMatchObject({ error: { code: "insufficient_balance", required_micros: 47 } });
  await set(discountOf(5_000));
  expect(await generate(prompt)).toMatchObject({ finish_reason: "stop" });
});

test("an input above the bound has the discounted prices of its tier, whatever the output is", async () => {
  await set(discountOf(2_500));
  await generate(`[[tokens=2]]${" word".repeat(300)}`);
  const entry = await lastEntry();
  const input = Number(entry.input_tokens);
  expect(input).toBeGreaterThan(100);
  expect(entry).toMatchObject({
    price_tier: 100,
    prices: { input: 3_000_000, output: 6_000_000, tiers: [] },
    amount_micros: -(Math.ceil((input * 3_000_000 + 2 * 6_000_000) / 1_000_000) + 3),
  });
  expect(await operator.audit({})).toMatchObject({ consistent: true });
});

test("prices of a model count instead of a discount on all models, until they end", async () => {
  const own = { input: 5n, output: 6n, cachedInput: 1n, tiers: [{ aboveInputTokens: 7n, input: 8n }] };
  await set(discountOf(10_000));
  await set({ case: "prices", value: own }, "alias");
  expect(await pricesOf("m")).toEqual({
    ...{ input: 5, cached_input: 1, cache_write: 0, cache_write_1h: 0, output: 6, reasoning: 0, image: 0, request: 0 },
    tiers: [expect.objectContaining({ above_input_tokens: 7, input: 8, output: 0 })],
  });
  expect(await pricesOf("other")).toMatchObject({ input: 0, output: 0 });
  await set(undefined, "m");
  expect(await pricesOf("m")).toMatchObject({ input: 0 });
  await set(undefined);
  expect(await pricesOf("m")).toMatchObject({ input: 1_000_000 });
  const { versions } = await operator.listAccountPrices({ accountId: key.accountId });
  expect(versions.map(({ version, model, discountBps, prices }) => [version, model, discountBps, prices?.input])).toEqual([
    [4, "", undefined, undefined],
    [3, "m", undefined, undefined],
    [2, "m", undefined, 5n],
    [1, "", 10_000, undefined],
  ]);
});

test("each change is an event of the account", async () => {
  await set(discountOf(1_500));
  await set({ case: "prices", value: { input: 5n } }, "m");
  await set(undefined, "m");
  const { events } = (await read("/v1/events?types=price.changed")) as { events: Json[] };
  expect(events.map(({ data }) => data)).toMatchObject([
    { model: "", version: 1, discount_bps: 1_500 },
    { model: "m", version: 2, prices: { input: 5, output: 0 } },
    { model: "m", version: 3 },
  ]);
});

const tier = (aboveInputTokens: bigint) => ({ aboveInputTokens });
const own = (value: Extract<Change, { case: "prices" }>["value"]): Change => ({ case: "prices", value });
const refused: [string, string, Change, string][] = [
  ["an unknown model", "none", discountOf(1), "model_not_found"],
  ["a discount above 100 %", "m", discountOf(10_001), "invalid_argument"],
  ["prices without a model", "", own({}), "model"],
  ["a negative price", "m", own({ cacheWrite1h: -1n }), "prices.cache_write_1h"],
  ["a price that is too high", "m", own({ tiers: [{ aboveInputTokens: 1n, image: 10n ** 13n }] }), "prices.tiers[0].image"],
  ["tiers in a wrong order", "m", own({ tiers: [tier(2n), tier(2n)] }), "prices.tiers[1].above_input_tokens"],
  ["too many tiers", "m", own({ tiers: Array.from({ length: 9 }, (_, i) => tier(BigInt(i + 1))) }), "prices.tiers"],
];
test.each(refused)("refuses %s", async (_, model, change, expected) => {
  const request = { accountId: key.accountId, model, change, reason: "contract 7" };
  const outcome = await call(AdminService.method.setAccountPrices, request);
  expect(outcome.ok).toBe(false);
  expect(JSON.stringify(outcome)).toContain(expected);
  expect((await operator.listAccountPrices({ accountId: key.accountId })).versions).toEqual([]);
});

test("the audit finds changed and removed versions, and charges with other prices", async () => {
  await set(discountOf(1_000));
  await set(discountOf(2_000));
  await generate("Hello");
  const { owner } = app.database;
  const rules = async () => new Set((await operator.audit({})).findings.map(({ rule }) => rule));
  expect(await rules()).toEqual(new Set());
  const { accountId } = key;
  const where = owner`account_id = ${accountId} AND version = 2`;
  await owner`UPDATE vx.account_prices SET discount = 5000 WHERE ${where}`;
  expect(await rules()).toEqual(new Set(["prices_unchanged", "charge_matches_prices"]));
  await owner`UPDATE vx.account_prices SET discount = 2000 WHERE ${where}`;
  for (const version of [0, 1]) {
    await owner`UPDATE vx.accounts SET price_list_version = ${version} WHERE id = ${accountId}`;
    expect(await rules(), `version ${version}`).toEqual(new Set(["prices_unchanged"]));
  }
  await owner`UPDATE vx.accounts SET price_list_version = 2 WHERE id = ${accountId}`;
  await owner`UPDATE vx.ledger SET price_list_version = 1 WHERE account_id = ${accountId} AND kind = 'generation'`;
  expect(await rules()).toContain("charge_matches_prices");
  await owner`UPDATE vx.ledger SET price_list_version = 2 WHERE account_id = ${accountId} AND kind = 'generation'`;
  await owner`DELETE FROM vx.account_prices WHERE account_id = ${accountId}`;
  expect(await rules()).toEqual(new Set(["prices_unchanged", "charge_matches_prices"]));
});
