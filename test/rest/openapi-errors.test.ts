import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { expect, test, vi } from "vitest";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { ERRORS, type Reason } from "../../src/domain/errors.ts";
import { BUILT_IN_MODELS } from "../../src/models/built-in.ts";
import { bodyBudget } from "../../src/server/http/connection-limits.ts";
import { exampleValues } from "../../src/server/pages/openapi-page.ts";
import { developerServices } from "../../src/server/services.ts";
import { documentedReasons } from "../../tools/openapi/errors.ts";
import { anthropicErrorExample, errorExample } from "../../tools/openapi/insert-examples.ts";
import { operationsOf } from "../../tools/openapi/operations.ts";
import { startTestApp, useOwnApp } from "../support/app.ts";
import { createTestKey, type TestKey, type TestKeyOptions, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { createPaidKey, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";
import { testFile } from "./descriptors.ts";
import { differences } from "./differences.ts";
import { mount } from "./mount.ts";
import { type JsonAnswer, sendJson } from "./send-json.ts";

const MODEL = exampleValues(BUILT_IN_MODELS).generation;
// With one connection, a statement that is blocked also blocks the next one.
const app = useOwnApp({ env: { VX_DATABASE_CONNECTIONS: "1" } });
/** A server that takes payments, without a connection to Stripe, and that allows one wrong key a minute. */
const strict = started(() => {
  const stripe = { VX_STRIPE_SECRET_KEY: "sk_test_x", VX_STRIPE_WEBHOOK_SECRET: "whsec_x" };
  return startTestApp({ env: { ...stripe, VX_AUTH_FAILURES_PER_MINUTE: "1" }, database: app.database });
});
const key = usePaidKey(app);
const operator = useOperator(app);
/** The sandbox waits as long as it can. */
const SLOW = "[[tokens=1 delay_ms=10000]]";
const WEBHOOK = { url: "https://hooks.example.com/" };

/** A key of an account of its own. */
const fresh = (options: TestKeyOptions = {}) => createTestKey(operator, options);
/** Another key of the account. */
const another = (options: TestKeyOptions = {}) => fresh({ accountId: key.accountId, ...options });
const narrowed = async (fields: object) => (await operator.createKey({ accountId: key.accountId, name: "k", ...fields })).secret;

/** A call that fails with the error, for each error of the document. */
const FAILING: Partial<Record<Reason, () => Promise<JsonAnswer>>> = {
  invalid_argument: () => send("POST", "/v1/keys", { name: "" }),
  context_length_exceeded: () => generate("word ".repeat(9_000)),
  max_cost_too_low: () => generate("Hello", key, {}, { max_cost_micros: 1 }),
  thread_unsupported_request: () =>
    send("POST", "/v1/messages", { ...sandbox("Hello"), max_tokens: 10, thread: { type: "create" } }),
  missing_api_key: () => send("GET", "/v1/me", undefined, ""),
  invalid_api_key: () => send("GET", "/v1/me", undefined, `${key.secret}x`),
  revoked_api_key: async () => {
    const { id, secret } = await another();
    await operator.revokeKey({ keyId: id });
    return await send("GET", "/v1/me", undefined, secret);
  },
  expired_api_key: async () => {
    const { id, secret } = await another();
    await app.database.owner`UPDATE vx.keys SET expires_at = now() WHERE id = ${id}`;
    return await send("GET", "/v1/me", undefined, secret);
  },
  insufficient_balance: async () => generate("Hello", await fresh()),
  payment_reversed: async () => {
    const payer = await fresh();
    await app.database.owner`UPDATE vx.accounts SET owed_micros = 4200000 WHERE id = ${payer.accountId}`;
    return await generate("Hello", payer);
  },
  topup_limit_reached: async () => {
    const { accountId, secret } = await fresh({ scopes: ["billing"] });
    await app.database.owner`
      INSERT INTO vx.topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at)
      SELECT vx.lane_of(${accountId}), 'top_' || n, ${accountId}, 'pending', 1, 'usd', '', now() FROM generate_series(1, 20) n`;
    return await send("POST", "/v1/topups", { amount_micros: 5_000_000 }, secret, {}, strict.url);
  },
  payments_not_configured: async () => send("GET", "/v1/topups", undefined, (await fresh({ scopes: ["billing"] })).secret),
  budget_exceeded: () => limited("cost", "day"),
  token_limit_exceeded: () => limited("tokens", "minute"),
  generation_limit_exceeded: () => limited("generations", "day"),
  concurrency_limit_reached: () => limited("concurrent", "", 1n),
  insufficient_scope: async () => send("GET", "/v1/keys", undefined, (await another({ scopes: ["read"] })).secret),
  model_not_allowed: async () =>
    send("GET", "/v1/models/vx-sandbox-large", undefined, await narrowed({ models: ["vx-sandbox-small"] })),
  address_not_allowed: async () => send("GET", "/v1/me", undefined, await narrowed({ allowedCidrs: ["203.0.113.0/24"] })),
  account_suspended: async () => {
    const { accountId, secret } = await fresh();
    await operator.suspendAccount({ accountId, reason: "overdue" });
    return await send("GET", "/v1/keys", undefined, secret);
  },
  not_found: () => send("GET", "/v1/keys/key_01kam4xy3wf4dtyhvcm8qtc5cg"),
  model_not_found: () => send("GET", "/v1/models/none"),
  cursor_expired: () => send("GET", "/v1/events?after=evt_00000000000000000000000000"),
  key_limit_reached: async () => {
    await operator.putPlan({ name: "one", rpm: 60, maxActiveKeys: 1 });
    return await send("POST", "/v1/keys", { name: "another" }, (await fresh({ plan: "one" })).secret);
  },
  webhook_limit_reached: async () => {
    const { secret } = await fresh({ scopes: ["webhooks"] });
    const create = () => send("POST", "/v1/webhooks", WEBHOOK, secret);
    for (let i = 0; i < 16; i++) await create();
    return await create();
  },
  webhook_disabled: async () => {
    const { secret } = await fresh({ scopes: ["webhooks"] });
    const created = await send("POST", "/v1/webhooks", WEBHOOK, secret);
    const { id } = (created.body as { webhook: { id: string } }).webhook;
    await app.database.owner`UPDATE vx.webhooks SET state = 'disabled' WHERE id = ${id}`;
    return await send("POST", `/v1/webhooks/${id}:redeliver`, {}, secret);
  },
  idempotency_in_progress: async () => {
    const headers = { "idempotency-key": "order-2" };
    return await whileRunning(key, headers, () => generate(SLOW, key, headers));
  },
  generation_interrupted: async () => {
    const ask = () => generate("Hello", key, { "idempotency-key": "order-3" });
    expect((await ask()).status).toBe(200);
    await app.database.owner`
      UPDATE vx.answers SET answer = answer::jsonb || '{"failure": "unavailable"}'
      WHERE account_id = ${key.accountId} AND idempotency_key = 'order-3'`;
    return await ask();
  },
  request_too_large: () => send("POST", `/v1/keys/${key.id}:rotate`, { name: "x".repeat(70_000) }),
  unsupported_media_type: () => send("POST", "/v1/keys", {}, key.secret, { "content-type": "text/plain" }),
  idempotency_key_reused: async () => {
    await generate("Hello", key, { "idempotency-key": "order-1" });
    return await generate("Good morning", key, { "idempotency-key": "order-1" });
  },
  rate_limit_exceeded: async () => {
    const { secret } = await another({ rateLimitRpm: 1 });
    return await secondOf(() => send("GET", "/v1/models", undefined, secret));
  },
  key_creation_limit_reached: async () => {
    await operator.putPlan({ name: "few", rpm: 60, maxActiveKeys: 10, maxKeysCreatedPerHour: 1 });
    const { secret } = await fresh({ plan: "few" });
    return await secondOf(() => send("POST", "/v1/keys", { name: "k" }, secret));
  },
  too_many_failed_authentications: () =>
    secondOf(() => send("GET", "/v1/me", undefined, generateKey(3, randomBytes).secret, {}, strict.url)),
  internal: async () => {
    const { owner } = app.database;
    await owner`ALTER TABLE vx.plans RENAME TO lost`;
    try {
      return await send("GET", "/v1/me");
    } finally {
      await owner`ALTER TABLE vx.lost RENAME TO plans`;
    }
  },
  upstream_error: () => generate("[[fail_after=0]]"),
  overloaded: async () => {
    const leaving = new AbortController();
    const watch = { verb: "GET", path: "/v1/events:watch", secret: (await fresh()).secret, signal: leaving.signal };
    // An account can have 100 watchers. A busy database can end their streams, which are no JSON.
    const refused = Promise.withResolvers<JsonAnswer>();
    for (let i = 0; i < 101; i++) sendJson(app.url, watch).then(refused.resolve, () => undefined);
    const answer = await refused.promise;
    leaving.abort();
    return answer;
  },
  unavailable: async () =>
    (await app.database.owner.begin(async (sql) => {
      await sql`LOCK TABLE vx.ledger`;
      const answer = send("GET", "/v1/ledger");
      // An administrator of the database terminates the backend of the call.
      await vi.waitFor(async () => {
        const ended = await app.database.owner`
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%vx.list_entries(%'`;
        expect(ended).toHaveLength(1);
      });
      return await answer;
    })) as JsonAnswer,
  deadline_exceeded: slowBody,
};

test("each documented error is produced by a case above", () => {
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

/** The second of two calls in the same minute. */
const secondOf = (call: () => Promise<JsonAnswer>) =>
  withinOneMinute(async () => {
    await call();
    return await call();
  });

/** A generation above the limit of its account. */
async function limited(metric: string, window: string, amount = 0n): Promise<JsonAnswer> {
  const payer = await createPaidKey(operator);
  const limit = { metric, window, amount };
  await operator.setLimit({ owner: { case: "accountId", value: payer.accountId }, limit });
  const call = () => generate("Hello", payer);
  return await (amount === 0n ? call() : whileRunning(payer, {}, call));
}

/** Makes the call while a generation of the account is running. */
async function whileRunning(payer: TestKey, headers: Record<string, string>, call: () => Promise<JsonAnswer>) {
  const leaving = new AbortController();
  const running = generate(SLOW, payer, headers, {}, leaving.signal);
  const { accountId } = payer;
  await vi.waitFor(async () =>
    expect(await app.database.owner`SELECT FROM vx.holds WHERE account_id = ${accountId}`).toHaveLength(1),
  );
  const answer = await call();
  leaving.abort();
  await expect(running).rejects.toThrow("aborted");
  return answer;
}

/** Announces a body and never sends it, to a server with a short body timeout. */
async function slowBody(): Promise<JsonAnswer> {
  const http = { pattern: { case: "post", value: "/v1/take" }, body: "*" } as const;
  const file = testFile({ Text: ["string text"] }, { Take: { input: "Text", output: "Text", http } });
  const methods = { take: async (message: unknown) => message };
  const server = await mount(file, { budget: new BodyBudget({ ...bodyBudget, bodyMs: 50 }), methods });
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

function sandbox(content: string) {
  return { model: "vx-sandbox-small", messages: [{ role: "user", content }] };
}

function generate(content: string, { secret } = key, headers: Record<string, string> = {}, fields = {}, signal?: AbortSignal) {
  const body = { ...sandbox(content), ...fields };
  return sendJson(app.url, { verb: "POST", path: "/v1/generate", body, secret, headers, ...(signal && { signal }) });
}

function send(verb: string, path: string, body?: unknown, secret = key.secret, headers = {}, url = app.url): Promise<JsonAnswer> {
  return sendJson(url, { verb, path, body, secret, headers });
}
