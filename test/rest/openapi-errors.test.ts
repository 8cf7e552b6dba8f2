import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { developerServices } from "../../src/api/services.ts";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { ERRORS, type Reason } from "../../src/domain/errors.ts";
import { BUILT_IN_MODELS } from "../../src/models/built-in.ts";
import { bodyBudget } from "../../src/server/http/limits.ts";
import { exampleValues } from "../../src/server/pages/openapi-page.ts";
import { documentedReasons } from "../../tools/openapi/errors.ts";
import { anthropicErrorExample, errorExample } from "../../tools/openapi/insert-examples.ts";
import { operationsOf } from "../../tools/openapi/operations.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { testFile } from "./descriptors.ts";
import { differences } from "./differences.ts";
import { mount } from "./mount.ts";
import { type JsonAnswer, sendJson } from "./send-json.ts";

const MODEL = exampleValues(BUILT_IN_MODELS).generation;
let app: TestApp;
/** A server that takes payments. It does not reach Stripe. */
let paidApp: TestApp;
let key: TestKey;

beforeAll(async () => {
  // With one connection, a statement that is blocked also blocks the next one.
  app = await startTestApp({ env: { VX_DATABASE_CONNECTIONS: "1" } });
  const env = { VX_STRIPE_SECRET_KEY: "sk_test_x", VX_STRIPE_WEBHOOK_SECRET: "whsec_x" };
  paidApp = await startTestApp({ env, database: app.database });
  const operator = operatorOf(app);
  key = await createTestKey(operator);
  const credit = { amountMicros: 10_000_000n, reason: "invoice 1001", idempotencyKey: "1001" };
  await operator.creditAccount({ accountId: key.accountId, ...credit });
});
afterAll(async () => {
  await paidApp.stop();
  await app.stop();
});

/** A call that fails with the error, for each error of the document. */
const FAILING: Partial<Record<Reason, () => Promise<JsonAnswer>>> = {
  invalid_argument: () => send("POST", "/v1/keys", { name: "" }),
  context_length_exceeded: () => generate(key, "word ".repeat(9_000)),
  max_cost_too_low: () =>
    send("POST", "/v1/generate", {
      model: "vx-sandbox-small",
      messages: [{ role: "user", content: "Hello" }],
      max_cost_micros: 1,
    }),
  thread_unsupported_request: () =>
    send("POST", "/v1/messages", {
      model: "vx-sandbox-small",
      max_tokens: 10,
      messages: [{ role: "user", content: "Hello" }],
      thread: { type: "create" },
    }),
  missing_api_key: () => send("GET", "/v1/me", undefined, ""),
  invalid_api_key: () => send("GET", "/v1/me", undefined, `${key.secret}x`),
  revoked_api_key: async () => {
    const { id, secret } = await createTestKey(operatorOf(app), { accountId: key.accountId });
    await operatorOf(app).revokeKey({ keyId: id });
    return await send("GET", "/v1/me", undefined, secret);
  },
  expired_api_key: async () => {
    const { id, secret } = await createTestKey(operatorOf(app), { accountId: key.accountId });
    await app.database.owner`UPDATE vx.keys SET expires_at = now() WHERE id = ${id}`;
    return await send("GET", "/v1/me", undefined, secret);
  },
  insufficient_balance: async () => generate(await createTestKey(operatorOf(app)), "Hello"),
  payment_reversed: async () => {
    const { accountId, secret } = await createTestKey(operatorOf(app));
    await app.database.owner`UPDATE vx.accounts SET owed_micros = 4200000 WHERE id = ${accountId}`;
    return await generate({ ...key, secret }, "Hello");
  },
  topup_limit_reached: async () => {
    const { accountId, secret } = await createTestKey(operatorOf(paidApp), { scopes: ["billing"] });
    await app.database.owner`
      INSERT INTO vx.topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at)
      SELECT vx.lane_of(${accountId}), 'top_' || n, ${accountId}, 'pending', 1, 'usd', '', now() FROM generate_series(1, 20) n`;
    const body = { amount_micros: 5_000_000 };
    return await sendJson(paidApp.url, { verb: "POST", path: "/v1/topups", secret, body });
  },
  payments_not_configured: async () => {
    const { secret } = await createTestKey(operatorOf(app), { scopes: ["billing"] });
    return await send("GET", "/v1/topups", undefined, secret);
  },
  budget_exceeded: () => limited({ metric: "cost", window: "day", amount: 0n }),
  token_limit_exceeded: () => limited({ metric: "tokens", window: "minute", amount: 0n }),
  generation_limit_exceeded: () => limited({ metric: "generations", window: "day", amount: 0n }),
  concurrency_limit_reached: () => limited({ metric: "concurrent", window: "", amount: 1n }, 2),
  insufficient_scope: async () => {
    const narrow = await createTestKey(operatorOf(app), { accountId: key.accountId, scopes: ["read"] });
    return await send("GET", "/v1/keys", undefined, narrow.secret);
  },
  model_not_allowed: async () => {
    const { secret } = await operatorOf(app).createKey({
      accountId: key.accountId,
      name: "narrow",
      models: ["vx-sandbox-small"],
    });
    return await send("GET", "/v1/models/vx-sandbox-large", undefined, secret);
  },
  address_not_allowed: async () => {
    const { secret } = await operatorOf(app).createKey({
      accountId: key.accountId,
      name: "office",
      allowedCidrs: ["203.0.113.0/24"],
    });
    return await send("GET", "/v1/me", undefined, secret);
  },
  account_suspended: async () => {
    const { accountId, secret } = await createTestKey(operatorOf(app));
    await operatorOf(app).suspendAccount({ accountId, reason: "overdue" });
    return await send("GET", "/v1/keys", undefined, secret);
  },
  not_found: () => send("GET", "/v1/keys/key_01kam4xy3wf4dtyhvcm8qtc5cg"),
  model_not_found: () => send("GET", "/v1/models/none"),
  cursor_expired: () => send("GET", "/v1/events?after=evt_00000000000000000000000000"),
  key_limit_reached: async () => {
    await operatorOf(app).putPlan({ name: "one", rpm: 60, maxActiveKeys: 1 });
    const only = await createTestKey(operatorOf(app), { plan: "one" });
    return await send("POST", "/v1/keys", { name: "another" }, only.secret);
  },
  webhook_limit_reached: async () => {
    const { secret } = await createTestKey(operatorOf(app), { scopes: ["webhooks"] });
    const body = { url: "https://hooks.example.com/" };
    const create = () => send("POST", "/v1/webhooks", body, secret);
    for (let i = 0; i < 16; i++) await create();
    return await create();
  },
  webhook_disabled: async () => {
    const { secret } = await createTestKey(operatorOf(app), { scopes: ["webhooks"] });
    const created = await send("POST", "/v1/webhooks", { url: "https://hooks.example.com/" }, secret);
    const { id } = (created.body as { webhook: { id: string } }).webhook;
    await app.database.owner`UPDATE vx.webhooks SET state = 'disabled' WHERE id = ${id}`;
    return await send("POST", `/v1/webhooks/${id}:redeliver`, {}, secret);
  },
  idempotency_in_progress: async () => {
    const ask = () => generate(key, "[[tokens=1 delay_ms=2000]]", { "idempotency-key": "order-2" });
    const first = ask();
    await vi.waitFor(async () => expect(await app.database.owner`SELECT FROM vx.holds`).toHaveLength(1));
    const second = await ask();
    expect((await first).status).toBe(200);
    return second;
  },
  generation_interrupted: async () => {
    const ask = () => generate(key, "Hello", { "idempotency-key": "order-3" });
    expect((await ask()).status).toBe(200);
    await app.database.owner`
      UPDATE vx.answers SET answer = answer::jsonb || '{"failure": "unavailable"}'
      WHERE account_id = ${key.accountId} AND idempotency_key = 'order-3'`;
    return await ask();
  },
  request_too_large: () => send("POST", `/v1/keys/${key.id}:rotate`, { name: "x".repeat(70_000) }),
  unsupported_media_type: () => send("POST", "/v1/keys", {}, key.secret, { "content-type": "text/plain" }),
  idempotency_key_reused: async () => {
    await generate(key, "Hello", { "idempotency-key": "order-1" });
    return await generate(key, "Good morning", { "idempotency-key": "order-1" });
  },
  rate_limit_exceeded: async () => {
    const slow = await createTestKey(operatorOf(app), { accountId: key.accountId, rateLimitRpm: 1 });
    return await withinOneMinute(async () => {
      await send("GET", "/v1/models", undefined, slow.secret);
      return await send("GET", "/v1/models", undefined, slow.secret);
    });
  },
  key_creation_limit_reached: async () => {
    const plan = { name: "few", rpm: 60, maxActiveKeys: 10, maxKeysCreatedPerHour: 1 };
    await operatorOf(app).putPlan(plan);
    const busy = await createTestKey(operatorOf(app), { plan: "few" });
    return await withinOneMinute(async () => {
      await send("POST", "/v1/keys", { name: "first" }, busy.secret);
      return await send("POST", "/v1/keys", { name: "second" }, busy.secret);
    });
  },
  too_many_failed_authentications: () =>
    withinOneMinute(async () => {
      const strict = await startTestApp({
        database: app.database,
        env: { VX_AUTH_FAILURES_PER_MINUTE: "1" },
      });
      try {
        const unknown = () => send("GET", "/v1/me", undefined, generateKey(3, randomBytes).secret, {}, strict.url);
        expect((await unknown()).status).toBe(401);
        return await unknown();
      } finally {
        await strict.stop();
      }
    }),
  internal: async () => {
    const { owner } = app.database;
    await owner`ALTER TABLE vx.plans RENAME TO lost`;
    try {
      return await send("GET", "/v1/me");
    } finally {
      await owner`ALTER TABLE vx.lost RENAME TO plans`;
    }
  },
  upstream_error: () => generate(key, "[[fail_after=0]]"),
  overloaded: () =>
    withLockedLedger(async () => {
      const before = send("GET", "/v1/ledger");
      await waitingCall();
      const answer = await send("GET", "/v1/ledger");
      await endWaiting();
      await before;
      return answer;
    }),
  unavailable: () =>
    withLockedLedger(async () => {
      const answer = send("GET", "/v1/ledger");
      await endWaiting();
      return await answer;
    }),
  deadline_exceeded: slowBody,
};

/** Of some generations at once, one that the limit of their account refuses. */
async function limited(limit: { metric: string; window: string; amount: bigint }, calls = 1): Promise<JsonAnswer> {
  const operator = operatorOf(app);
  const limitedKey = await createTestKey(operator);
  const { accountId } = limitedKey;
  const credit = { accountId, amountMicros: 10_000_000n, reason: "test", idempotencyKey: accountId };
  await operator.creditAccount(credit);
  await operator.setLimit({ owner: { case: "accountId", value: accountId }, limit });
  const answers = await Promise.all(Array.from({ length: calls }, () => generate(limitedKey, "[[tokens=1 delay_ms=500]]")));
  return answers.find(({ status }) => status !== 200) as JsonAnswer;
}

test("each documented error is produced by a case below", () => {
  expect(Object.keys(FAILING).sort()).toEqual(documentedReasons(operationsOf(developerServices)).sort());
});

test.each(Object.entries(FAILING))("%s has the shape of the example", async (reason, fail) => {
  const answer = await fail();
  expect(answer.body).toMatchObject({ error: { code: reason } });
  expect(answer.status).toBe(ERRORS[reason as Reason].status);
  const isAnthropic = (answer.body as { type?: string }).type === "error";
  const exampleOf = isAnthropic ? anthropicErrorExample : errorExample;
  expect(differences(exampleOf(reason as Reason, MODEL), answer.body)).toEqual([]);
});

async function withLockedLedger(during: () => Promise<JsonAnswer>): Promise<JsonAnswer> {
  return (await app.database.owner.begin(async (sql) => {
    await sql`LOCK TABLE vx.ledger`;
    return await during();
  })) as JsonAnswer;
}

/** The backend of the call that waits for the ledger, when there is one. */
function waitingCall(): Promise<number> {
  return vi.waitFor(async () => {
    const [waiting] = await app.database.owner<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%vx.list_entries(%'`;
    if (!waiting) throw new Error("no call waits for the ledger");
    return waiting.pid;
  });
}

/** Terminates that backend, as a database administrator can. */
async function endWaiting(): Promise<void> {
  await app.database.owner`SELECT pg_terminate_backend(${await waitingCall()})`;
}

/** Announces a body and never sends it, to a server with a short body timeout. */
async function slowBody(): Promise<JsonAnswer> {
  const file = testFile(
    { Text: ["string text"] },
    {
      Take: {
        input: "Text",
        output: "Text",
        http: { pattern: { case: "post", value: "/v1/take" }, body: "*" },
      },
    },
  );
  const server = await mount(file, {
    budget: new BodyBudget({ ...bodyBudget, bodyMs: 50 }),
    methods: { take: async (message: unknown) => message },
  });
  try {
    return await new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json", "content-length": 10 };
      const call = request(new URL("/v1/take", server.url), { method: "POST", headers, agent: false });
      call.on("error", reject);
      call.on("response", async (response) => {
        const text = (await response.toArray()).join("");
        call.destroy();
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
      });
      call.write("{");
    });
  } finally {
    await server.stop();
  }
}

function generate({ secret }: TestKey, content: string, headers: Record<string, string> = {}) {
  const body = { model: "vx-sandbox-small", messages: [{ role: "user", content }] };
  return send("POST", "/v1/generate", body, secret, headers);
}

function send(
  verb: string,
  path: string,
  body?: unknown,
  secret = key.secret,
  headers: Record<string, string> = {},
  url = app.url,
): Promise<JsonAnswer> {
  return sendJson(url, { verb, path, body, secret, headers });
}
