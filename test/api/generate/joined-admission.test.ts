// A metered call of a key that was admitted lately is admitted by the statement that places its hold.

import { request as httpRequest } from "node:http";
import { beforeEach, expect, test } from "vitest";
import type { TestKey } from "../../support/fixtures.ts";
import { createTestKey } from "../../support/fixtures.ts";
import { MODEL, SANDBOX_MODEL, useMetered } from "../../support/metered.ts";
import { withinOneMinute } from "../../support/minute.ts";
import { bearer } from "../../support/protocols.ts";

const metered = useMetered();
let key: TestKey;
beforeEach(async () => {
  key = await metered.payer(1_000_000n);
});

const PROMPT = { model: SANDBOX_MODEL, messages: [{ role: "user", content: "hi" }], max_tokens: 10 };

async function generate(secret: string, body: object = PROMPT) {
  const headers = { ...bearer(secret), "content-type": "application/json" };
  const response = await fetch(`${metered.app.url}/v1/generate`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const { error, usage } = (await response.json()) as {
    error?: { code: string };
    usage?: { cost_micros: number };
  };
  const remaining = response.headers.get("x-ratelimit-remaining-requests");
  return { status: response.status, code: error?.code, cost: usage?.cost_micros, remaining };
}

/** The key of a new call, after one call of it was admitted. */
async function admittedBefore(options: Parameters<typeof createTestKey>[1] = {}): Promise<TestKey> {
  const other = await createTestKey(metered.operator, { accountId: key.accountId, ...options });
  expect(await generate(other.secret)).toMatchObject({ status: 200 });
  return other;
}

const admissions = () => metered.metric('vx_batch_size_count{batcher="admission"}');

/** No hold is left, and only so many calls are charged. */
async function expectCharged(calls: number): Promise<void> {
  await metered.settled();
  expect((await metered.account(key)).held).toBe(0);
  expect(await metered.rows(key)).toHaveLength(calls);
}

test("the second call of a key is admitted without a statement of its own, with the same headers", async () => {
  await withinOneMinute(async () => {
    const { secret } = await createTestKey(metered.operator, { accountId: key.accountId, rateLimitRpm: 50 });
    expect(await generate(secret)).toMatchObject({ status: 200, remaining: "49" });
    const before = await admissions();
    expect(await generate(secret)).toMatchObject({ status: 200, remaining: "48" });
    expect(await admissions()).toBe(before);
  });
});

test("exactly as many concurrent calls are admitted as fit the minute, and only they hold", async () => {
  await withinOneMinute(async () => {
    const { secret } = await admittedBefore({ rateLimitRpm: 6 });
    const charged = (await metered.rows(key)).length;
    const results = await Promise.all(Array.from({ length: 30 }, () => generate(secret)));
    const count = (status: number) => results.filter((result) => result.status === status).length;
    expect([count(200), count(429)]).toEqual([5, 25]);
    await expectCharged(charged + 5);
  });
});

test.each<[string, (key: TestKey) => Promise<unknown>, object]>([
  [
    "is revoked",
    ({ id }) => metered.operator.revokeKey({ keyId: id }),
    { status: 401, code: "revoked_api_key" },
  ],
  [
    "has got address ranges",
    ({ id }) => metered.operator.updateKey({ keyId: id, allowedCidrs: ["192.0.2.0/24"] }),
    { status: 403, code: "address_not_allowed" },
  ],
  [
    "may no longer use the model",
    ({ id }) => metered.operator.updateKey({ keyId: id, models: [MODEL] }),
    { status: 403, code: "model_not_allowed" },
  ],
  [
    "has lost its scope",
    ({ id }) => metered.app.database.owner`UPDATE vx.keys SET scopes = 2 WHERE id = ${id}`,
    { status: 403, code: "insufficient_scope" },
  ],
  [
    "has expired",
    ({ id }) => metered.app.database.owner`UPDATE vx.keys SET expires_at = now() WHERE id = ${id}`,
    { status: 401, code: "expired_api_key" },
  ],
  [
    "is of a suspended account",
    ({ accountId }) => metered.operator.suspendAccount({ accountId, reason: "test" }),
    { status: 403, code: "account_suspended" },
  ],
])("a key that %s since its last call is refused, and nothing is held", async (_, change, refusal) => {
  const other = await admittedBefore();
  await change(other);
  expect(await generate(other.secret)).toMatchObject(refusal);
  await expectCharged(1);
});

test("a refusal of the gate comes before any other error of the call", async () => {
  const wrong = { ...PROMPT, max_tokens: -1 };
  const unknown = { ...PROMPT, model: "no-model" };
  await withinOneMinute(async () => {
    const { secret } = await admittedBefore({ rateLimitRpm: 2 });
    // It takes the last slot.
    expect(await generate(secret, wrong)).toMatchObject({ status: 400, remaining: "0" });
    expect(await generate(secret, unknown)).toMatchObject({ status: 429 });
  });
  const other = await admittedBefore();
  await metered.operator.revokeKey({ keyId: other.id });
  expect(await generate(other.secret, wrong)).toMatchObject({ status: 401 });
});

test.each([
  ["/v1/generate", "application/json"],
  ["/vx.v1.GenerateService/StreamGenerate", "application/grpc-web+json"],
])("a refusal of the gate comes before the error of a stream: %s", async (path, type) => {
  const other = await admittedBefore();
  await metered.operator.revokeKey({ keyId: other.id });
  const json = Buffer.from(
    JSON.stringify({ ...PROMPT, model: "no-model", ...(type.endsWith("/json") && { stream: true }) }),
  );
  const head = Buffer.alloc(type.endsWith("/json") ? 0 : 5);
  if (head.length > 0) head.writeUInt32BE(json.length, 1);
  const response = await fetch(metered.app.url + path, {
    method: "POST",
    headers: { ...bearer(other.secret), "content-type": type },
    body: Buffer.concat([head, json]),
  });
  expect(`${response.headers.get("grpc-message")} ${await response.text()}`).toMatch(/revoked/);
});

test("a call is charged at the prices of its account that apply when it is admitted", async () => {
  const other = await admittedBefore();
  const { cost = 0 } = await generate(other.secret);
  await metered.operator.setAccountPrices({
    accountId: key.accountId,
    reason: "test",
    change: { case: "discountBps", value: 5_000 },
  });
  expect((await generate(other.secret)).cost).toBe(Math.ceil(cost / 2));
  await expectCharged(3);
});

test("after a rotation, the previous secret works during the overlap", async () => {
  const other = await admittedBefore();
  const { secret } = await metered.operator.rotateKey({ keyId: other.id, overlapSeconds: 60 });
  for (const sent of [other.secret, secret, other.secret]) {
    expect(await generate(sent)).toMatchObject({ status: 200 });
  }
  await expectCharged(4);
});

test.each([
  ["is announced", 1_000],
  ["is announced too large", 2 ** 30],
])("a revoked key is refused before its body has arrived, which %s", async (_, bytes) => {
  const other = await admittedBefore();
  await metered.operator.revokeKey({ keyId: other.id });
  const headers = { ...bearer(other.secret), "content-type": "application/json", "content-length": bytes };
  const before = await admissions();
  const call = httpRequest(`${metered.app.url}/v1/generate`, { method: "POST", headers });
  const status = new Promise((resolve, reject) => {
    call.once("response", ({ statusCode }) => resolve(statusCode)).once("error", reject);
  });
  call.write('{"model":');
  expect(await status).toBe(401);
  expect(await admissions()).toBe(before + 1);
  call.destroy();
});
