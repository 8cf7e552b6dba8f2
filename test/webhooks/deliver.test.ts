import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { JsonObject } from "@bufbuild/protobuf";
import { test as base, describe, expect, vi } from "vitest";
import { sendAnyJson } from "../support/any-json.ts";
import { startTestApp, useOwnApp } from "../support/app.ts";
import { createCertificate } from "../support/certificate.ts";
import { createTestKey, operatorOf, type TestKey, useOperator } from "../support/fixtures.ts";
import { started } from "../support/started.ts";
import { expectDescribed } from "../support/webhook-bodies.ts";
import { eventOf, type Received, verified, WebhookReceiver } from "../support/webhook-receiver.ts";

const env = { VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8", VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.0/8" };
const app = useOwnApp({ env });
const operator = useOperator(app);
// Another server on the same database.
started(() => startTestApp({ env, database: app.database }));

const test = base
  .extend("receiver", async ({ task: _ }, { onCleanup }) => {
    const receiver = await new WebhookReceiver().start();
    onCleanup(() => receiver.stop());
    return receiver;
  })
  /** A webhook of a new account for all events. */
  .extend("hook", async ({ receiver }) => {
    const key = await newKey();
    return { key, ...(await create(key, receiver.url())) };
  });

const newKey = () => createTestKey(operator, { scopes: ["read", "keys", "webhooks"] });

const api = ({ secret }: TestKey, verb: string, path: string, body?: unknown) =>
  sendAnyJson(app.url, { verb, path: `/v1/webhooks${path}`, body, secret });

async function create(key: TestKey, url: string, types?: string[]) {
  const { body } = await api(key, "POST", "", { url, types });
  return { id: body.webhook.id as string, secret: body.secret as string };
}

const stateOf = async (key: TestKey, id: string) => (await api(key, "GET", `/${id}`)).body.webhook.state;

let credits = 0;
const credit = ({ accountId }: TestKey) =>
  operator.creditAccount({ accountId, amountMicros: 1n, reason: "test", idempotencyKey: `${credits++}` });

const deliveries = async (key: TestKey, id: string, query = "") =>
  (await api(key, "GET", `/${id}/deliveries${query}`)).body.deliveries;

const POLL = { interval: 10 };

/** Resolves when the newest delivery has this state and so many attempts. */
const settled = (key: TestKey, id: string, state: string, attempts: number) =>
  vi.waitFor(async () => {
    const [delivery] = await deliveries(key, id);
    expect(delivery).toMatchObject({ state, attempts });
    return delivery;
  }, POLL);

const secondsBetween = ({ attempted_at, next_attempt_at }: { attempted_at: string; next_attempt_at: string }) =>
  (Date.parse(next_attempt_at) - Date.parse(attempted_at)) / 1_000;

/** The last of so many deliveries. */
const received = async (receiver: WebhookReceiver, count = 1, path?: string) =>
  (await receiver.until(count, path)).at(-1) as Received;

const seqsOf = (all: readonly Received[]) => all.map((each) => eventOf(each).seq);

/** Makes the next attempt of a webhook due now. */
async function makeDue(id: string): Promise<void> {
  const { owner } = app.database;
  await owner`UPDATE vx.deliveries SET due_at = clock_timestamp() WHERE webhook_id = ${id} AND state = 'pending'`;
  await owner`UPDATE vx.webhook_queues SET due_at = clock_timestamp(), blocked_until = '-infinity' WHERE webhook_id = ${id}`;
}

/** The time since which it fails, and the time since which it is enabled, are six days earlier. */
async function sixDaysLater(id: string): Promise<void> {
  const { owner } = app.database;
  await owner`UPDATE vx.webhooks SET enabled_at = enabled_at - interval '6 days' WHERE id = ${id}`;
  await owner`UPDATE vx.webhook_queues SET failing_since = failing_since - interval '6 days' WHERE webhook_id = ${id}`;
}

/** Until the webhook has so many queues that fit the condition. */
const untilQueues = (id: string, count: number, condition = "true", table = "webhook_queues") =>
  vi.waitFor(async () => {
    const rows = await app.database.owner.unsafe(`SELECT 1 FROM vx.${table} WHERE webhook_id = '${id}' AND ${condition}`);
    expect(rows).toHaveLength(count);
  }, POLL);

const PRIVATE = "The address is private, local or reserved.";

describe.concurrent("a delivery", () => {
  test("has the event and the signatures of all secrets whose overlap is not over", async ({ receiver }) => {
    const key = await newKey();
    const { id, secret } = await create(key, receiver.url(), ["credit.posted"]);
    await credit(key);
    const first = await received(receiver);
    const event = verified(secret, first);
    expectDescribed({ ...event, data: event.data as JsonObject });
    const path = "/v1/events?types=credit.posted";
    const { body } = await sendAnyJson(app.url, { verb: "GET", path, secret: key.secret });
    const { created_at: timestamp, ...stored } = body.events[0];
    expect(event).toEqual({ ...stored, timestamp });
    expect(first.headers).toMatchObject({ "webhook-id": event.id, "content-type": "application/json" });
    expect(Number(first.headers["content-length"])).toBeLessThan(20_000);

    const rotate = async (overlap_seconds: number) => (await api(key, "POST", `/${id}:rotate`, { overlap_seconds })).body.secret;
    const secrets = [secret, await rotate(60), await rotate(60), await rotate(60)];
    await credit(key);
    const second = await received(receiver, 2);
    for (const each of secrets) expect(verified(each, second)).toMatchObject({ seq: 3 });

    const last = await rotate(0);
    await credit(key);
    const third = await received(receiver, 3);
    expect(verified(last, third)).toMatchObject({ seq: 4 });
    expect(() => verified(secrets.at(-1), third)).toThrow("No matching signature");
  });

  test("is sent once by one of several servers, in the order of the events", async ({ receiver }) => {
    const key = await newKey();
    await create(key, receiver.url());
    const count = 40;
    for (let i = 0; i < count; i++) await credit(key);
    expect(seqsOf(await receiver.until(count))).toEqual(Array.from({ length: count }, (_, i) => i + 2));
  });

  test("waits for the one before only at its own endpoint", async ({ receiver }) => {
    const key = await newKey();
    const slow = await create(key, receiver.url("/slow"));
    await create(key, receiver.url("/fast"));
    receiver.respond = (response, { path }) => {
      if (path === "/fast") response.writeHead(204).end();
    };
    await credit(key);
    await credit(key);
    await receiver.until(2, "/fast");
    expect(await receiver.until(1, "/slow")).toHaveLength(1);
    await api(key, "DELETE", `/${slow.id}`);
  });

  test("is listed with the outcome and the first 1,000 characters of the answer, without keys and secrets", async ({
    receiver,
  }) => {
    const key = await newKey();
    const { id, secret } = await create(key, receiver.url());
    const escaped = JSON.stringify(secret).replaceAll("/", "\\/");
    receiver.respond = (response) =>
      response.writeHead(200).end(`VX_KEY=${key.secret} ${secret} ${escaped}\0${"é".repeat(50_000)}`);
    await credit(key);
    const delivery = await settled(key, id, "delivered", 1);
    expect(delivery).toMatchObject({
      type: "credit.posted",
      data: { amount_micros: 1, reason: "test" },
      next_attempt_at: null,
      outcome: { status: 200, error: "", latency_ms: expect.any(Number) },
    });
    expect(delivery.outcome.answer).toMatch(/^VX_KEY=vx_live_\[redacted\] whsec_\[redacted\] "whsec_\[redacted\]"\ufffdé+$/);
    expect(delivery.outcome.answer).toHaveLength(1_000);
    expect(await deliveries(key, id, "?state=failed")).toEqual([]);
    expect(await deliveries(key, id, "?state=delivered")).toHaveLength(1);
  });

  test("of a server that ends is made by another one after a minute", async ({ receiver, hook: { key, id } }) => {
    receiver.respond = () => undefined;
    await credit(key);
    await receiver.until(1);
    const { owner } = app.database;
    const [claimed] = await owner`
      SELECT claimed_until - clock_timestamp() BETWEEN interval '50 seconds' AND interval '1 minute' AS known
      FROM vx.webhook_queues WHERE webhook_id = ${id}`;
    expect(claimed?.known).toBe(true);
    receiver.respond = (response) => response.writeHead(204).end();
    await owner`UPDATE vx.webhook_queues SET claimed_until = clock_timestamp() WHERE webhook_id = ${id}`;
    await settled(key, id, "delivered", 1);
    expect(receiver.received).toHaveLength(2);
  });
});

describe.concurrent("a failed delivery", () => {
  test.for([
    [500, "The endpoint answered 500."],
    [302, "The endpoint answered 302. Redirects are not followed."],
  ] as const)("with %i is repeated after a pause", async ([status, error], { receiver, hook: { key, id } }) => {
    const location = receiver.url("/redirected");
    receiver.respond = (response) => response.writeHead(status, { location }).end("no");
    await credit(key);
    const delivery = await settled(key, id, "pending", 1);
    expect(delivery.outcome).toMatchObject({ status, error, answer: "no" });
    receiver.respond = (response) => response.writeHead(204).end();
    await makeDue(id);
    await settled(key, id, "delivered", 2);
    const ids = (await receiver.until(2)).map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(1);
    expect(receiver.received.filter(({ path }) => path === "/redirected")).toEqual([]);
  });

  test("is repeated nine times, then listed as failed, and delivered again on request", async ({
    receiver,
    hook: { key, id },
  }) => {
    receiver.respond = (response) => response.writeHead(503).end();
    await credit(key);
    const hours = [5 / 3_600, 1 / 12, 0.5, 2, 5, 10, 14, 20, 24];
    for (const [i, pause] of hours.entries()) {
      const seconds = secondsBetween(await settled(key, id, "pending", i + 1));
      expect(Math.abs(seconds / 3_600 / pause - 1), `${seconds} s`).toBeLessThanOrEqual(0.1);
      await makeDue(id);
    }
    const { event_id } = await settled(key, id, "failed", 10);
    receiver.respond = (response) => response.writeHead(204).end();
    const redelivered = { body: { events: 1, has_more: false } };
    expect(await api(key, "POST", `/${id}:redeliver`, { event_id })).toMatchObject(redelivered);
    await settled(key, id, "delivered", 1);
  });

  test("waits as long as the endpoint asks, at most a day, with the other events of the endpoint", async ({
    receiver,
    hook: { key, id },
  }) => {
    for (const [header, seconds] of Object.entries({ "3600": 3_600, "99999999": 86_400 })) {
      receiver.received.length = 0;
      receiver.respond = (response) => response.writeHead(429, { "retry-after": header }).end();
      await credit(key);
      expect(Math.round(secondsBetween(await settled(key, id, "pending", 1)))).toBe(seconds);
      await credit(key);
      await untilQueues(id, 1, "blocked_until > clock_timestamp() + interval '59 minutes'");
      expect(receiver.received).toHaveLength(1);
      receiver.respond = (response) => response.writeHead(204).end();
      await makeDue(id);
      await receiver.until(3);
    }
  });

  test("without an answer says why", async ({ receiver, hook: { key, id } }) => {
    await receiver.stop();
    await credit(key);
    const error = expect.stringContaining("ECONNREFUSED");
    expect((await settled(key, id, "pending", 1)).outcome).toMatchObject({ status: 0, error });
  });

  test("to an endpoint whose certificate is not trusted is not sent", async () => {
    const requests: unknown[] = [];
    const server = createServer(createCertificate(), (request, response) => {
      requests.push(request.url);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const key = await newKey();
    const { id } = await create(key, `https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const { body } = await api(key, "POST", `/${id}:test`, {});
    expect(body.outcome).toMatchObject({ status: 0, error: expect.stringContaining("certificate") });
    expect(requests).toEqual([]);
    server.close();
  });
});

describe.concurrent("a webhook", () => {
  test("is disabled by 410, with an event, and receives what it missed on request", async ({ receiver }) => {
    const key = await newKey();
    const watcher = await create(key, receiver.url("/watcher"), ["webhook.disabled"]);
    const { id } = await create(key, receiver.url(), ["credit.posted"]);
    receiver.respond = (response, { path }) => response.writeHead(path === "/watcher" ? 204 : 410).end();
    await credit(key);
    const event = verified(watcher.secret, await received(receiver, 1, "/watcher"));
    expect(event).toMatchObject({ type: "webhook.disabled", data: { webhook_id: id } });
    const disabled = { state: "disabled", disabled_reason: "gone" };
    expect((await api(key, "GET", `/${id}`)).body.webhook).toMatchObject(disabled);
    await credit(key);
    await settled(key, id, "failed", 1);
    expect(await deliveries(key, id)).toHaveLength(1);
    const redeliver = () => api(key, "POST", `/${id}:redeliver`, { from: new Date(0).toISOString() });
    expect(await redeliver()).toMatchObject({ status: 409, body: { error: { code: "webhook_disabled" } } });
    receiver.respond = (response) => response.writeHead(204).end();
    await api(key, "PATCH", `/${id}`, { state: "enabled" });
    receiver.received.length = 0;
    expect(await redeliver()).toMatchObject({ body: { events: 2 } });
    const seqs = seqsOf(await receiver.until(2));
    expect(seqs).toEqual(seqs.toSorted((one, two) => one - two));
    expect(await redeliver()).toMatchObject({ body: { events: 0 } });
  });

  test("is disabled after five days without an accepted delivery", async ({ receiver, hook: { key, id } }) => {
    receiver.respond = (response) => response.writeHead(500).end();
    await credit(key);
    await settled(key, id, "pending", 1);
    await sixDaysLater(id);
    for (const [days, attempts, state] of [
      [4, 2, "enabled"],
      [6, 3, "enabled"],
      [4, 4, "enabled"],
      [6, 5, "disabled"],
    ] as const) {
      await app.database.owner`
        UPDATE vx.webhook_queues SET failing_since = clock_timestamp() - make_interval(days => ${days}) WHERE webhook_id = ${id}`;
      await makeDue(id);
      await settled(key, id, state === "enabled" ? "pending" : "failed", attempts);
      expect(await stateOf(key, id)).toBe(state);
    }
  });

  test("starts anew when its address changes", async ({ receiver, hook: { key, id } }) => {
    const held = Promise.withResolvers<void>();
    receiver.respond = (response, { path }) => {
      if (path === "/") response.writeHead(503, { "retry-after": "3600" }).end();
      else void held.promise.then(() => response.writeHead(500).end());
    };
    await credit(key);
    await settled(key, id, "pending", 1);
    await sixDaysLater(id);
    await api(key, "PATCH", `/${id}`, { url: receiver.url("/new") });
    await receiver.until(1, "/new");
    await sixDaysLater(id);
    held.resolve();
    await vi.waitFor(async () => expect((await deliveries(key, id))[0].outcome.status).toBe(500));
    for (const attempts of [2, 3, 4, 5]) {
      await makeDue(id);
      await settled(key, id, "pending", attempts);
    }
    expect(await stateOf(key, id)).toBe("enabled");
  });

  test("sends what waits to its new address at once, with all attempts", async ({ receiver, hook: { key, id } }) => {
    receiver.respond = (response, { path }) =>
      response.writeHead(path === "/" ? 503 : 204, path === "/" ? { "retry-after": "3600" } : {}).end();
    await credit(key);
    await settled(key, id, "pending", 1);
    await makeDue(id);
    await settled(key, id, "pending", 2);
    await credit(key);
    await api(key, "PATCH", `/${id}`, { url: receiver.url("/new") });
    expect(seqsOf(await receiver.until(2, "/new")).sort()).toEqual([2, 3]);
    const delivered = Array(2).fill({ state: "delivered", attempts: 1 });
    await vi.waitFor(async () => expect(await deliveries(key, id)).toMatchObject(delivered));
  });

  test.for([
    ["that it is gone", 410, {}],
    ["to come back in an hour", 503, { "retry-after": "3600" }],
    ["that it accepts the event", 204, {}],
  ] as const)("ignores an answer of its old address %s", async ([, status, headers], { receiver, hook: { key, id } }) => {
    const held = Promise.withResolvers<void>();
    receiver.respond = (response, { path }) => {
      if (path === "/") void held.promise.then(() => response.writeHead(status, headers).end());
      else response.writeHead(204).end();
    };
    await credit(key);
    await receiver.until(1);
    await api(key, "PATCH", `/${id}`, { url: receiver.url("/new") });
    held.resolve();
    expect(await receiver.until(1, "/new")).toHaveLength(1);
    await settled(key, id, "delivered", 1);
    expect(await stateOf(key, id)).toBe("enabled");
  });

  test("receives events that happen while it is paused when it is enabled again", async ({ receiver, hook: { key, id } }) => {
    await api(key, "PATCH", `/${id}`, { state: "paused" });
    for (let i = 0; i < 3; i++) await credit(key);
    await untilQueues(id, 1, "blocked_until > clock_timestamp()");
    expect(receiver.received).toEqual([]);
    await api(key, "PATCH", `/${id}`, { state: "enabled" });
    expect(seqsOf(await receiver.until(3))).toEqual([2, 3, 4]);
  });

  test("is tested in any state, with a signed delivery that is not repeated", async ({ receiver, hook: { key, id, secret } }) => {
    await api(key, "PATCH", `/${id}`, { state: "paused" });
    receiver.respond = (response) => response.writeHead(418).end("é".repeat(300));
    const { body } = await api(key, "POST", `/${id}:test`, {});
    expect(body.outcome).toMatchObject({ status: 418, error: "The endpoint answered 418.", answer: "" });
    const first = await received(receiver);
    const event = verified(secret, first);
    expect(event).toMatchObject({ id: first.headers["webhook-id"], seq: 0, data: { webhook_id: id } });
    expectDescribed({ ...event, data: event.data as JsonObject });
    expect(await deliveries(key, id)).toEqual([]);
    // Operators see the first 200 characters of the answer.
    const { outcome } = await operator.testWebhook({ webhookId: id, reason: "test" });
    expect(outcome).toMatchObject({ status: 418, answer: "é".repeat(200) });
  });

  test("is tested by one call of an account at a time", async ({ receiver }) => {
    const [key, foreign] = [await newKey(), await newKey()];
    const [slow, own] = [await create(key, receiver.url("/slow")), await create(key, receiver.url())];
    const other = await create(foreign, receiver.url());
    const held = Promise.withResolvers<void>();
    receiver.respond = (response, { path }) => {
      void (path === "/slow" ? held.promise : Promise.resolve()).then(() => response.writeHead(204).end());
    };
    const first = api(key, "POST", `/${slow.id}:test`, {});
    await receiver.until(1, "/slow");
    const overloaded = { status: 503, body: { error: { code: "overloaded" } } };
    expect(await api(key, "POST", `/${own.id}:test`, {})).toMatchObject(overloaded);
    expect((await api(foreign, "POST", `/${other.id}:test`, {})).body.outcome.status).toBe(204);
    held.resolve();
    expect((await first).body.outcome.status).toBe(204);
  });

  test("is not delivered an event of another account", async ({ receiver }) => {
    const [key, foreign] = [await newKey(), await newKey()];
    const { id } = await create(key, receiver.url());
    const { events } = await operator.listEvents({ accountId: foreign.accountId });
    expect(await api(key, "POST", `/${id}:redeliver`, { event_id: events[0]?.id })).toMatchObject({ status: 404 });
    expect(await deliveries(key, id)).toEqual([]);
  });

  test("that is deleted leaves no queue, also if nothing is pending", async ({ hook: { key, id } }) => {
    await credit(key);
    await settled(key, id, "delivered", 1);
    await api(key, "DELETE", `/${id}`);
    await untilQueues(id, 0);
  });

  test("that is deleted while an attempt runs leaves no queue", async ({ receiver, hook: { key, id } }) => {
    const held = Promise.withResolvers<void>();
    receiver.respond = (response) => void held.promise.then(() => response.writeHead(204).end());
    await credit(key);
    await receiver.until(1);
    await api(key, "DELETE", `/${id}`);
    await untilQueues(id, 0, "true", "woken_queues");
    held.resolve();
    await untilQueues(id, 0);
  });

  test("that is deleted receives nothing more", async ({ receiver, hook: { key, id } }) => {
    receiver.respond = (response) => response.writeHead(500).end();
    await credit(key);
    await settled(key, id, "pending", 1);
    await api(key, "DELETE", `/${id}`);
    await makeDue(id);
    await untilQueues(id, 0);
    expect(receiver.received).toHaveLength(1);
  });
});

describe("a webhook of operators", () => {
  const accountsOf = (all: readonly Received[]) => all.map((each) => eventOf(each).account_id).sort();
  const created = { types: ["key.created"], reason: "test" };

  test("is sent events of any account", async ({ receiver }) => {
    const { webhook, secret } = await operator.createWebhook({ url: receiver.url("/all"), ...created });
    const keys = [await newKey(), await newKey(), await newKey()];
    const all = await receiver.until(3, "/all");
    for (const each of all) verified(secret, each);
    expect(accountsOf(all)).toEqual(keys.map(({ accountId }) => accountId).sort());
    const webhookId = webhook?.id ?? "";
    expect((await operator.listDeliveries({ webhookId, pageSize: 2 })).deliveries).toHaveLength(2);
    await operator.deleteWebhook({ webhookId, reason: "test" });
  });

  test("starts anew for the events of all accounts when its address changes", async ({ receiver }) => {
    const { webhook } = await operator.createWebhook({ url: receiver.url("/old"), ...created });
    const webhookId = webhook?.id ?? "";
    receiver.respond = (response, { path }) =>
      response.writeHead(path === "/old" ? 503 : 204, path === "/old" ? { "retry-after": "3600" } : {}).end();
    const accounts = [(await newKey()).accountId, (await newKey()).accountId].sort();
    await untilQueues(webhookId, 2, "blocked_until > now() + interval '50 minutes'");
    await operator.updateWebhook({ webhookId, url: receiver.url("/new"), reason: "test", updateMask: { paths: ["url"] } });
    expect(accountsOf(await receiver.until(2, "/new"))).toEqual(accounts);
    await operator.deleteWebhook({ webhookId, reason: "test" });
  });
});

test.for([
  ["VX_WEBHOOK_ALLOWED_CIDRS", "no account"],
  ["VX_WEBHOOK_CUSTOMER_CIDRS", "an account"],
] as const)("%s applies to the webhooks of %s only", async ([name, owner], { receiver }) => {
  const server = await startTestApp({ env: { [name]: "127.0.0.0/8" }, database: app.database });
  const { accountId } = await newKey();
  const admin = operatorOf(server);
  const reason = "test";
  const createFor = async (of: string) => {
    const created = await admin.createWebhook({ accountId: of, url: receiver.url(), reason });
    const webhookId = created.webhook?.id ?? "";
    expect((await admin.testWebhook({ webhookId, reason })).outcome?.status).toBe(204);
    await admin.updateWebhook({ webhookId, url: receiver.url("/other"), reason });
    await admin.deleteWebhook({ webhookId, reason });
  };
  const [allowed, other] = owner === "an account" ? [accountId, ""] : ["", accountId];
  await createFor(allowed);
  await expect(createFor(other)).rejects.toThrow("url: must begin with https://");
  const { webhook } = await admin.createWebhook({ accountId: other, url: "https://example.com/", reason });
  const change = { webhookId: webhook?.id ?? "", url: `https://127.0.0.1:${receiver.port}/`, reason };
  await expect(admin.updateWebhook(change)).rejects.toThrow(PRIVATE);
  await admin.deleteWebhook({ webhookId: change.webhookId, reason });
  await server.stop();
});

test("the listeners of the server receive nothing, although their addresses are allowed", async () => {
  const key = await newKey();
  for (const url of [app.url, app.adminUrl]) {
    const refused = { status: 400, body: { error: { message: expect.stringContaining(PRIVATE) } } };
    expect(await api(key, "POST", "", { url })).toMatchObject(refused);
    await expect(operator.createWebhook({ url, reason: "test" })).rejects.toThrow(PRIVATE);
  }
});

test("addresses of private ranges receive nothing unless they are allowed", async ({ receiver }) => {
  const strict = await startTestApp({ database: app.database });
  const key = await newKey();
  const { id } = await create(key, receiver.url());
  const { secret } = key;
  // Another server allowed the address before.
  for (const scheme of ["https", "http"]) {
    await app.database.owner`UPDATE vx.webhooks SET url = ${`${scheme}://127.0.0.1:${receiver.port}/`} WHERE id = ${id}`;
    const { body } = await sendAnyJson(strict.url, { verb: "POST", path: `/v1/webhooks/${id}:test`, body: {}, secret });
    expect(body.outcome).toMatchObject({ status: 0, error: expect.stringContaining(PRIVATE) });
  }
  expect(receiver.received).toEqual([]);
  await api(key, "DELETE", `/${id}`);
  await strict.stop();
});
