import { afterAll, beforeAll, expect, test } from "vitest";
import { laneOfId, withLane } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { typeIds } from "../support/type-ids.ts";

/** Two accounts of one lane, whose rows are next to each other in every table. */
let first: TestKey;
let second: TestKey;

const app = useOwnApp();
const operator = useOperator(app);
beforeAll(async () => {
  await operator.putPlan({ name: "two", rpm: 100_000, maxActiveKeys: 2, maxKeysCreatedPerHour: 1 });
  const { account } = await operator.createAccount({ name: "first", plan: "two" });
  const accountId = account?.id ?? "";
  const lane = laneOfId(accountId);
  const otherId = withLane(typeIds.account(), lane);
  await app.database.owner`SELECT vx.create_account(${TEST_CALLER}, ${lane}::smallint, ${otherId}, 'second', 'two')`;
  first = await createTestKey(operator, { accountId });
  second = await createTestKey(operator, { accountId: otherId });
});
afterAll(async () => {
  expect(await operator.audit({})).toMatchObject({ consistent: true });
});

async function call(key: TestKey, method: string, path: string, body?: object, headers = {}) {
  const answer = await fetch(`${app.url}${path}`, {
    method,
    headers: { ...bearer(key.secret), "content-type": "application/json", ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const generate = (key: TestKey, content: string) => {
  const body = { model: "vx-sandbox-small", messages: [{ role: "user", content }], max_tokens: 20 };
  return call(key, "POST", "/v1/generate", body, { "idempotency-key": "same" });
};

test("a credit with the same idempotency key is one for each account", async () => {
  for (const { accountId } of [first, second]) {
    const credit = { accountId, amountMicros: 1_000_000n, reason: "test", idempotencyKey: "same" };
    for (let i = 0; i < 2; i++) expect((await operator.creditAccount(credit)).entry?.amountMicros).toBe(1_000_000n);
    const { account } = await operator.getAccount({ accountId });
    expect(account?.balanceMicros).toBe(1_000_000n);
  }
});

test("generations, entries and usage are those of the account", async () => {
  const ids: unknown[] = [];
  for (const key of [first, second]) {
    const content = `for ${key.id}`;
    const reply = await generate(key, content);
    expect(reply.status).toBe(200);
    expect(await generate(key, content)).toEqual(reply);
    ids.push(reply.body.id);
  }
  for (const [i, key] of [first, second].entries()) {
    expect((await call(key, "GET", `/v1/generations/${ids[i]}`)).status).toBe(200);
    expect((await call(key, "GET", `/v1/generations/${ids[1 - i]}`)).status).toBe(404);
    const filters = ["", "?kind=generation", `?key_id=${key.id}`, "?model=vx-sandbox-small", "?from=2020-01-01T00:00:00Z"];
    for (const filter of filters) {
      const { entries } = (await call(key, "GET", `/v1/ledger${filter}`)).body as { entries: { id: string }[] };
      const generations = entries.map(({ id }) => id).filter((id) => id.slice(4) === String(ids[i]).slice(4));
      expect(generations, filter).toHaveLength(1);
      expect(entries.length, filter).toBeLessThanOrEqual(2);
    }
    const usage = JSON.stringify((await call(key, "GET", "/v1/usage")).body);
    expect(usage).toContain('"requests":1');
    expect((await call(key, "GET", `/v1/ledger?key_id=${i === 0 ? second.id : first.id}`)).body).toMatchObject({ entries: [] });
  }
});

test("keys are those of the account, and so are the limits of a plan", async () => {
  for (const [key, other] of [
    [first, second],
    [second, first],
  ] as const) {
    expect((await call(key, "GET", `/v1/keys/${other.id}`)).status).toBe(404);
    expect((await call(key, "POST", `/v1/keys/${other.id}:revoke`)).status).toBe(404);
    const { body } = await call(key, "GET", "/v1/keys");
    expect((body as { api_keys: { id: string }[] }).api_keys.map(({ id }) => id)).toEqual([key.id]);
  }
  for (const key of [first, second]) {
    expect((await call(key, "POST", "/v1/keys", { name: "child" })).status).toBe(200);
    // The plan's maximum of active keys.
    expect((await call(key, "POST", "/v1/keys", { name: "third" })).status).toBeGreaterThanOrEqual(409);
  }
});
