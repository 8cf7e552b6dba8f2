import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import type { LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

type LimitInit = MessageInitShape<typeof LimitSchema>;

const MODEL = "vx-sandbox-small";
const TOKENS: LimitInit = { metric: "tokens", window: "day", amount: 100_000n };
const COST: LimitInit = { metric: "cost", window: "month", amount: 500_000n };
const RUNNING: LimitInit = { metric: "concurrent", amount: 4n };

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

/** A key with limits, and credit to use them. */
async function keyWith(limits: LimitInit[], plan = "scale"): Promise<TestKey> {
  const { accountId } = await createTestKey(operator, { plan });
  const credit = { amountMicros: 1_000_000n, reason: "test", idempotencyKey: "limits" };
  await operator.creditAccount({ accountId, ...credit });
  const scopes = ["generate", "read", "keys"];
  const { secret, apiKey } = await operator.createKey({ accountId, name: "limited", scopes, limits });
  return { accountId, secret, id: apiKey?.id ?? "" };
}

function inHours(hours: number) {
  return timestampFromDate(new Date(Date.now() + hours * 3_600_000));
}

const create = ({ secret }: { secret: string }, limits: LimitInit[]) =>
  call(KeyService.method.createKey, { name: "child", scopes: ["generate", "keys"], limits }, secret);
const update = (key: TestKey, keyId: string, limits: LimitInit[]) =>
  call(KeyService.method.updateKey, { keyId, limits, updateMask: { paths: ["limits"] } }, key.secret);
const generate = (secret: string, maxTokens = 10) =>
  call(GenerateService.method.generate, { model: MODEL, messages: [{ role: "user", content: "hi" }], maxTokens }, secret);

test("a key is created with its limits, which refuse calls from the first one on", async () => {
  const parent = await keyWith([]);
  const limits = [TOKENS, { metric: "generations", window: "hour", amount: 1n }];
  const { apiKey, secret } = messageOf(await create(parent, limits));
  expect(apiKey?.limits).toMatchObject([
    { metric: "generations", window: "hour", amount: 1n, owner: "key", ownerId: apiKey?.id, spent: 0n },
    { metric: "tokens", window: "day", amount: 100_000n, remaining: 100_000n },
  ]);
  expect(await generate(secret)).toMatchObject({ ok: true });
  expect(await generate(secret)).toMatchObject({ reason: "generation_limit_exceeded" });
  const { apiKeys } = await operator.listKeys({ accountId: parent.accountId });
  expect(apiKeys.find(({ id }) => id === apiKey?.id)?.limits).toMatchObject([
    { metric: "generations", spent: 1n, remaining: 0n },
    { metric: "tokens" },
  ]);
});

test("a list replaces the present limits; those that it repeats keep their counts", async () => {
  const parent = await keyWith([]);
  const hourly: LimitInit = { metric: "generations", window: "hour", amount: 1n };
  const { apiKey, secret } = messageOf(await create(parent, [hourly, TOKENS]));
  const keyId = apiKey?.id ?? "";
  await generate(secret);
  const [{ id } = { id: "" }] = apiKey?.limits ?? [];
  expect(await update(parent, keyId, [{ ...hourly, amount: 2n }, RUNNING])).toMatchObject({
    message: { apiKey: { limits: [{ metric: "concurrent" }, { id, metric: "generations", amount: 2n, spent: 1n }] } },
  });
  expect(await generate(secret)).toMatchObject({ ok: true });
  expect(await generate(secret)).toMatchObject({ reason: "generation_limit_exceeded" });
  const cleared = await update(parent, keyId, []);
  expect(cleared.ok && cleared.message.apiKey?.limits).toEqual([]);
  expect(await generate(secret)).toMatchObject({ ok: true });
});

test("no limit is above the same limit of the calling key or of a key that created it", async () => {
  const parent = await keyWith([TOKENS, COST]);
  const above = { ...TOKENS, amount: 100_001n };
  expect(await create(parent, [COST, above])).toMatchObject({ fields: ["limits[1].amount"] });
  const child = messageOf(await create(parent, [RUNNING]));
  expect(await create(child, [above])).toMatchObject({ fields: ["limits[0].amount"] });
  expect(await update(parent, child.apiKey?.id ?? "", [above])).toMatchObject({ fields: ["limits[0].amount"] });
  expect(await create(child, [{ ...RUNNING, amount: 5n }])).toMatchObject({ fields: ["limits[0].amount"] });
  // Other windows, models and users are other limits.
  const others = [
    { ...above, window: "week" },
    { ...above, model: MODEL },
    { ...above, per: "user" },
  ];
  expect(await create(child, [...others, TOKENS, COST])).toMatchObject({ ok: true });
});

test("a temporary amount is at most the temporary amount that the calling key has as long", async () => {
  const until = inHours(2);
  const raised = { ...TOKENS, temporaryAmount: 150_000n, temporaryUntil: until };
  const parent = await keyWith([raised]);
  expect(await create(parent, [raised])).toMatchObject({ ok: true });
  for (const tooMuch of [{ temporaryAmount: 150_001n }, { temporaryUntil: inHours(3) }]) {
    expect(await create(parent, [{ ...raised, ...tooMuch }])).toMatchObject({ fields: ["limits[0].temporary_amount"] });
  }
});

test("a key adds and lowers its own limits, and neither raises nor removes them", async () => {
  const key = await keyWith([TOKENS]);
  const lower = { ...TOKENS, amount: 90_000n };
  expect(await update(key, key.id, [lower, RUNNING])).toMatchObject({
    message: { apiKey: { limits: [{ amount: 4n }, { amount: 90_000n }] } },
  });
  expect(await update(key, key.id, [TOKENS, RUNNING])).toMatchObject({ fields: ["limits[0].amount"] });
  expect(await update(key, key.id, [lower])).toMatchObject({ fields: ["limits"] });
  expect(await update(key, key.id, [])).toMatchObject({ fields: ["limits"] });
});

test.each<[what: string, limits: LimitInit[], field: string]>([
  ["a window that is missing", [TOKENS, { metric: "cost", amount: 1n }], "limits[1].window"],
  ["an unknown metric", [{ metric: "words", window: "day", amount: 1n }], "limits[0].metric"],
  ["an unknown model", [{ ...TOKENS, model: "no-such-model" }], "limits[0].model"],
  ["two amounts of one limit", [TOKENS, COST, { ...TOKENS, amount: 1n }], "limits[2]"],
  ["21 limits", Array.from({ length: 21 }, () => TOKENS), "limits"],
])("%s is a 400 that names the field, and creates no key", async (_, limits, field) => {
  const parent = await keyWith([]);
  expect(await create(parent, limits)).toMatchObject({ reason: "invalid_argument", fields: [field] });
  expect((await operator.listKeys({ accountId: parent.accountId })).apiKeys).toHaveLength(2);
});

test("a key can have 20 limits", async () => {
  const windows = ["minute", "hour", "day", "week", "month", "total"];
  const limits = ["cost", "tokens", "generations"]
    .flatMap((metric) => windows.map((window) => ({ metric, window, amount: 10n })))
    .concat({ metric: "concurrent", window: "", amount: 1n }, { metric: "concurrent", window: "", amount: 1n })
    .map((limit, i) => (i === 19 ? { ...limit, per: "user" } : limit));
  const key = await keyWith(limits);
  const { apiKeys } = await operator.listKeys({ accountId: key.accountId });
  expect(apiKeys.find(({ id }) => id === key.id)?.limits).toHaveLength(20);
});

test("an operator sets limits above those of a parent, and removes them", async () => {
  const parent = await keyWith([TOKENS]);
  const amount = 200_000n;
  const { apiKey } = await operator.updateKey({
    keyId: parent.id,
    limits: [{ ...TOKENS, amount }],
    updateMask: { paths: ["limits"] },
  });
  expect(apiKey?.limits).toMatchObject([{ amount, ownerId: parent.id }]);
  await operator.updateKey({ keyId: parent.id, updateMask: { paths: ["limits"] } });
  const { apiKeys } = await operator.listKeys({ accountId: parent.accountId });
  expect(apiKeys.find(({ id }) => id === parent.id)?.limits).toEqual([]);
});
