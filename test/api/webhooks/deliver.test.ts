import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { sendAnyJson } from "../../support/any-json.ts";
import { startTestApp, type TestApp, useOwnApp } from "../../support/app.ts";
import { createCertificate } from "../../support/certificate.ts";
import { createTestKey, type Operator, operatorOf, type TestKey } from "../../support/fixtures.ts";
import { bearer } from "../../support/protocols.ts";
import { expectDescribed } from "../../support/webhook-bodies.ts";
import { eventOf, verified, type WebhookEvent, WebhookReceiver } from "../../support/webhook-receiver.ts";

/** On the same database. */
let other: TestApp;
let operator: Operator;
let receiver: WebhookReceiver;
const env = { VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8", VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.0/8" };

const app = useOwnApp({ env });
beforeAll(async () => {
  other = await startTestApp({ env, database: app.database });
  operator = operatorOf(app);
});
afterAll(async () => {
  await other.stop();
});
beforeEach(async () => {
  receiver = await new WebhookReceiver().start();
});
afterEach(() => receiver.stop());

const newKey = () => createTestKey(operator, { scopes: ["read", "keys", "webhooks"] });

const api = ({ secret }: TestKey, verb: string, path: string, body?: unknown) =>
  sendAnyJson(app.url, { verb, path: `/v1/webhooks${path}`, body, secret });

async function create(key: TestKey, fields: { url?: string; types?: string[] } = {}) {
  const { body } = await api(key, "POST", "", { url: receiver.url(), ...fields });
  return { id: body.webhook.id as string, secret: body.secret as string };
}

let credits = 0;
const credit = ({ accountId }: TestKey) =>
  operator.creditAccount({ accountId, amountMicros: 1n, reason: "test", idempotencyKey: `${credits++}` });

async function deliveries(key: TestKey, id: string, query = "") {
  return (await api(key, "GET", `/${id}/deliveries${query}`)).body.deliveries;
}

const POLL = { interval: 10 };

/** Resolves when the newest delivery has this state and so many attempts. */
async function settled(key: TestKey, id: string, state: string, attempts: number) {
  return await vi.waitFor(async () => {
    const [delivery] = await deliveries(key, id);
    expect(delivery).toMatchObject({ state, attempts });
    return delivery;
  }, POLL);
}

/** Makes the next attempt of a webhook due now. */
async function makeDue(id: string): Promise<void> {
  const { owner } = app.database;
  await owner`UPDATE vx.deliveries SET due_at = clock_timestamp() WHERE webhook_id = ${id} AND state = 'pending'`;
  await owner`UPDATE vx.webhook_queues SET due_at = clock_timestamp(), blocked_until = '-infinity' WHERE webhook_id = ${id}`;
}

const disabled = (webhookId: string) => [{ type: "webhook.disabled", data: { webhook_id: webhookId } }];

describe("a delivery", () => {
  test("has the event and the signatures of all secrets whose overlap is not over", async () => {
    const key = await newKey();
    const { id, secret } = await create(key, { types: ["credit.posted"] });
    await credit(key);
    const [first] = await receiver.until(1);
    if (!first) throw new Error("nothing was received");
    const event = verified(secret, first);
    expectDescribed({ ...event, data: event.data as JsonObject });
    const listed = await fetch(`${app.url}/v1/events?types=credit.posted`, { headers: bearer(key.secret) });
    const { events } = (await listed.json()) as {
      events: ({ created_at: string } & Omit<WebhookEvent, "timestamp">)[];
    };
    const { created_at: timestamp, ...stored } = events[0] as (typeof events)[number];
    expect(event).toEqual({ ...stored, timestamp });
    expect(first.headers).toMatchObject({ "webhook-id": event.id, "content-type": "application/json" });
    expect(Number(first.headers["content-length"])).toBeLessThan(20_000);

    const lost = [secret];
    for (let i = 0; i < 2; i++) lost.push((await api(key, "POST", `/${id}:rotate`, { overlap_seconds: 60 })).body.secret);
    const { body } = await api(key, "POST", `/${id}:rotate`, { overlap_seconds: 60 });
    await credit(key);
    const [, second] = await receiver.until(2);
    if (!second) throw new Error("nothing was received");
    for (const each of [...lost, body.secret]) expect(verified(each, second)).toMatchObject({ seq: 3 });

    const { body: last } = await api(key, "POST", `/${id}:rotate`, { overlap_seconds: 0 });
    await credit(key);
    const [, , third] = await receiver.until(3);
    if (!third) throw new Error("nothing was received");
    expect(verified(last.secret, third)).toMatchObject({ seq: 4 });
    expect(() => verified(body.secret, third)).toThrow("No matching signature");
  });

  test("is sent once by one of several servers, in the order of the events", async () => {
    const key = await newKey();
    await create(key);
    const count = 40;
    for (let i = 0; i < count; i++) await credit(key);
    const received = await receiver.until(count);
    expect(received.map((each) => eventOf(each).seq)).toEqual(Array.from({ length: count }, (_, i) => i + 2));
  });

  test("waits for the one before only at its own endpoint", async () => {
    const key = await newKey();
    const slow = await create(key, { url: receiver.url("/slow") });
    await create(key, { url: receiver.url("/fast") });
    receiver.respond = (response, { path }) => {
      if (path === "/fast") response.writeHead(204).end();
    };
    await credit(key);
    await credit(key);
    await receiver.until(2, "/fast");
    expect(await receiver.until(1, "/slow")).toHaveLength(1);
    await api(key, "DELETE", `/${slow.id}`);
  });

  test("is listed with the outcome and the first 1,000 characters of the answer", async () => {
    const key = await newKey();
    const { id } = await create(key);
    receiver.respond = (response) => response.writeHead(200).end(`\0${"é".repeat(50_000)}`);
    await credit(key);
    expect(await settled(key, id, "delivered", 1)).toMatchObject({
      type: "credit.posted",
      data: { amount_micros: 1, reason: "test" },
      next_attempt_at: null,
      outcome: { status: 200, error: "", answer: `\ufffd${"é".repeat(999)}`, latency_ms: expect.any(Number) },
    });
    expect(await deliveries(key, id, "?state=failed")).toEqual([]);
    expect(await deliveries(key, id, "?state=delivered")).toHaveLength(1);
  });

  test("is listed without the keys and secrets that an answer repeats", async () => {
    const key = await newKey();
    const { id, secret } = await create(key);
    const escaped = JSON.stringify(secret).replaceAll("/", "\\/");
    receiver.respond = (response) => response.writeHead(500).end(`VX_KEY=${key.secret} ${secret} ${escaped}`);
    await credit(key);
    const { outcome } = await settled(key, id, "pending", 1);
    expect(outcome.answer).toBe(`VX_KEY=vx_live_[redacted] whsec_[redacted] "whsec_[redacted]"`);
  });

  test("of a webhook of operators is sent for events of any account", async () => {
    const { webhook, secret } = await operator.createWebhook({
      url: receiver.url("/all"),
      types: ["key.created"],
      reason: "test",
    });
    const keys = [await newKey(), await newKey(), await newKey()];
    const received = await receiver.until(3, "/all");
    expect(received.map((each) => verified(secret, each).account_id).sort()).toEqual(
      keys.map(({ accountId }) => accountId).sort(),
    );
    const { deliveries: page } = await operator.listDeliveries({ webhookId: webhook?.id ?? "", pageSize: 2 });
    expect(page).toHaveLength(2);
    await operator.deleteWebhook({ webhookId: webhook?.id ?? "", reason: "test" });
  });
});

describe("a failed delivery", () => {
  test.each([
    [500, "The endpoint answered 500."],
    [302, "The endpoint answered 302. Redirects are not followed."],
  ])("with %i is repeated after a pause", async (status, error) => {
    const key = await newKey();
    const { id } = await create(key);
    const location = receiver.url("/redirected");
    receiver.respond = (response) => response.writeHead(status, { location }).end("no");
    await credit(key);
    const delivery = await settled(key, id, "pending", 1);
    expect(delivery.outcome).toMatchObject({ status, error, answer: "no" });
    const pause = Date.parse(delivery.next_attempt_at) - Date.parse(delivery.attempted_at);
    expect(pause).toBeGreaterThanOrEqual(4_500);
    expect(pause).toBeLessThanOrEqual(5_500);
    receiver.respond = (response) => response.writeHead(204).end();
    await makeDue(id);
    await settled(key, id, "delivered", 2);
    const ids = (await receiver.until(2)).map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(1);
    expect(receiver.received.filter(({ path }) => path === "/redirected")).toEqual([]);
  });

  test("is repeated nine times, then listed as failed, and delivered again on request", async () => {
    const key = await newKey();
    const { id } = await create(key);
    receiver.respond = (response) => response.writeHead(503).end();
    await credit(key);
    const pauses: number[] = [];
    for (let attempt = 1; attempt < 10; attempt++) {
      const delivery = await settled(key, id, "pending", attempt);
      pauses.push((Date.parse(delivery.next_attempt_at) - Date.parse(delivery.attempted_at)) / 1_000);
      await makeDue(id);
    }
    const failed = await settled(key, id, "failed", 10);
    const hour = 3_600;
    const expected = [5, 300, hour / 2, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];
    for (const [i, pause] of pauses.entries()) {
      expect(pause / (expected[i] as number)).toBeGreaterThanOrEqual(0.9);
      expect(pause / (expected[i] as number)).toBeLessThanOrEqual(1.1);
    }
    receiver.respond = (response) => response.writeHead(204).end();
    expect(await api(key, "POST", `/${id}:redeliver`, { event_id: failed.event_id })).toMatchObject({
      body: { events: 1, has_more: false },
    });
    await settled(key, id, "delivered", 1);
  });

  test("waits as long as the endpoint asks, at most a day, with the other events of the endpoint", async () => {
    const key = await newKey();
    const { id } = await create(key);
    const pauses = { "3600": 3_600, "99999999": 86_400 };
    for (const [header, seconds] of Object.entries(pauses)) {
      receiver.received.length = 0;
      receiver.respond = (response) => response.writeHead(429, { "retry-after": header }).end();
      await credit(key);
      const delivery = await settled(key, id, "pending", 1);
      const pause = Date.parse(delivery.next_attempt_at) - Date.parse(delivery.attempted_at);
      expect(Math.round(pause / 1_000)).toBe(seconds);
      await credit(key);
      const [row] = await app.database.owner`
        SELECT blocked_until > clock_timestamp() + interval '59 minutes' AS blocked FROM vx.webhook_queues
        WHERE webhook_id = ${id}`;
      expect(row?.blocked).toBe(true);
      expect(receiver.received).toHaveLength(1);
      receiver.respond = (response) => response.writeHead(204).end();
      await makeDue(id);
      await receiver.until(3);
    }
  });

  test("without an answer says why", async () => {
    const key = await newKey();
    const { id } = await create(key);
    await receiver.stop();
    receiver = await new WebhookReceiver().start();
    await credit(key);
    expect((await settled(key, id, "pending", 1)).outcome).toMatchObject({
      status: 0,
      error: expect.stringContaining("ECONNREFUSED"),
    });
  });

  test("to an endpoint whose certificate is not trusted is not sent", async () => {
    const key = await newKey();
    const requests: string[] = [];
    const server = createServer(createCertificate(), (request, response) => {
      requests.push(request.url ?? "");
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const { id } = await create(key, { url: `https://127.0.0.1:${port}/` });
    const { body } = await api(key, "POST", `/${id}:test`, {});
    expect(body.outcome).toMatchObject({ status: 0, error: expect.stringContaining("certificate") });
    expect(requests).toEqual([]);
    server.close();
  });
});

describe("a webhook", () => {
  test("is disabled by 410, with an event, and receives what it missed on request", async () => {
    const key = await newKey();
    const watcher = await create(key, { url: receiver.url("/watcher"), types: ["webhook.disabled"] });
    const { id } = await create(key, { types: ["credit.posted"] });
    receiver.respond = (response, { path }) => response.writeHead(path === "/watcher" ? 204 : 410).end();
    await credit(key);
    const [event] = await receiver.until(1, "/watcher");
    if (!event) throw new Error("nothing was received");
    expect([verified(watcher.secret, event)]).toMatchObject(disabled(id));
    expect((await api(key, "GET", `/${id}`)).body.webhook).toMatchObject({
      state: "disabled",
      disabled_reason: "gone",
    });
    await credit(key);
    await settled(key, id, "failed", 1);
    expect(await deliveries(key, id)).toHaveLength(1);
    const from = new Date(0).toISOString();
    expect(await api(key, "POST", `/${id}:redeliver`, { from })).toMatchObject({
      status: 409,
      body: { error: { code: "webhook_disabled" } },
    });
    receiver.respond = (response) => response.writeHead(204).end();
    await api(key, "PATCH", `/${id}`, { state: "enabled" });
    receiver.received.length = 0;
    expect(await api(key, "POST", `/${id}:redeliver`, { from })).toMatchObject({ body: { events: 2 } });
    const seqs = (await receiver.until(2)).map((each) => eventOf(each).seq);
    expect(seqs).toEqual([...seqs].sort((one, two) => one - two));
    expect(await api(key, "POST", `/${id}:redeliver`, { from })).toMatchObject({ body: { events: 0 } });
  });

  test("is disabled after five days without an accepted delivery", async () => {
    const key = await newKey();
    const { id } = await create(key);
    receiver.respond = (response) => response.writeHead(500).end();
    await credit(key);
    await settled(key, id, "pending", 1);
    const { owner } = app.database;
    await owner`UPDATE vx.webhooks SET enabled_at = enabled_at - interval '6 days' WHERE id = ${id}`;
    for (const [days, attempts, state] of [
      [4, 2, "enabled"],
      [6, 3, "enabled"],
      [4, 4, "enabled"],
      [6, 5, "disabled"],
    ] as const) {
      await owner`UPDATE vx.webhook_queues SET failing_since = clock_timestamp() - make_interval(days => ${days}) WHERE webhook_id = ${id}`;
      await makeDue(id);
      await receiver.until(attempts);
      await settled(key, id, state === "enabled" ? "pending" : "failed", attempts);
      expect((await api(key, "GET", `/${id}`)).body.webhook.state).toBe(state);
    }
  });

  test("starts anew when its address changes", async () => {
    const key = await newKey();
    const { id } = await create(key, { url: receiver.url("/old") });
    const sixDaysLater = async () => {
      const { owner } = app.database;
      await owner`UPDATE vx.webhooks SET enabled_at = enabled_at - interval '6 days' WHERE id = ${id}`;
      await owner`UPDATE vx.webhook_queues SET failing_since = failing_since - interval '6 days' WHERE webhook_id = ${id}`;
    };
    const held = Promise.withResolvers<void>();
    receiver.respond = (response, { path }) => {
      if (path === "/old") response.writeHead(503, { "retry-after": "3600" }).end();
      else void held.promise.then(() => response.writeHead(500).end());
    };
    await credit(key);
    await settled(key, id, "pending", 1);
    await sixDaysLater();
    await api(key, "PATCH", `/${id}`, { url: receiver.url("/new") });
    await receiver.until(1, "/new");
    await sixDaysLater();
    held.resolve();
    await expect.poll(async () => (await deliveries(key, id))[0].outcome.status).toBe(500);
    for (const attempts of [2, 3, 4, 5]) {
      await makeDue(id);
      await settled(key, id, "pending", attempts);
    }
    expect((await api(key, "GET", `/${id}`)).body.webhook.state).toBe("enabled");
  });

  test("sends what waits to its new address at once, with all attempts", async () => {
    const key = await newKey();
    const { id } = await create(key, { url: receiver.url("/old") });
    receiver.respond = (response, { path }) => {
      if (path === "/old") response.writeHead(503, { "retry-after": "3600" }).end();
      else response.writeHead(204).end();
    };
    await credit(key);
    await settled(key, id, "pending", 1);
    await makeDue(id);
    await settled(key, id, "pending", 2);
    await credit(key);
    await api(key, "PATCH", `/${id}`, { url: receiver.url("/new") });
    const seqs = (await receiver.until(2, "/new")).map((each) => eventOf(each).seq);
    expect(seqs.sort()).toEqual([2, 3]);
    await expect
      .poll(() => deliveries(key, id))
      .toMatchObject([
        { state: "delivered", attempts: 1 },
        { state: "delivered", attempts: 1 },
      ]);
  });

  test.each([
    ["that it is gone", 410, {}],
    ["to come back in an hour", 503, { "retry-after": "3600" }],
    ["that it accepts the event", 204, {}],
  ])("ignores an answer of its old address %s", async (_, status, headers) => {
    const key = await newKey();
    const { id } = await create(key, { url: receiver.url("/old") });
    const held = Promise.withResolvers<void>();
    receiver.respond = (response, { path }) => {
      if (path === "/old") void held.promise.then(() => response.writeHead(status, headers).end());
      else response.writeHead(204).end();
    };
    await credit(key);
    await receiver.until(1, "/old");
    await api(key, "PATCH", `/${id}`, { url: receiver.url("/new") });
    held.resolve();
    expect(await receiver.until(1, "/new")).toHaveLength(1);
    await settled(key, id, "delivered", 1);
    expect((await api(key, "GET", `/${id}`)).body.webhook.state).toBe("enabled");
  });

  test("of operators starts anew for the events of all accounts when its address changes", async () => {
    const reason = "test";
    const created = { url: receiver.url("/old"), types: ["key.created"], reason };
    const webhookId = (await operator.createWebhook(created)).webhook?.id ?? "";
    receiver.respond = (response, { path }) => {
      if (path === "/old") response.writeHead(503, { "retry-after": "3600" }).end();
      else response.writeHead(204).end();
    };
    const accounts = [(await newKey()).accountId, (await newKey()).accountId].sort();
    const { owner } = app.database;
    const paused = () =>
      owner`SELECT 1 FROM vx.webhook_queues WHERE webhook_id = ${webhookId} AND blocked_until > now() + interval '50 minutes'`;
    await expect.poll(paused).toHaveLength(2);
    await operator.updateWebhook({
      webhookId,
      url: receiver.url("/new"),
      reason,
      updateMask: { paths: ["url"] },
    });
    const received = await receiver.until(2, "/new");
    expect(received.map((each) => eventOf(each).account_id).sort()).toEqual(accounts);
    await operator.deleteWebhook({ webhookId, reason });
  });

  test("receives events that happen while it is paused when it is enabled again", async () => {
    const key = await newKey();
    const { id } = await create(key);
    await api(key, "PATCH", `/${id}`, { state: "paused" });
    for (let i = 0; i < 3; i++) await credit(key);
    const { owner } = app.database;
    await expect
      .poll(
        () => owner`
      SELECT 1 FROM vx.webhook_queues WHERE webhook_id = ${id} AND blocked_until > clock_timestamp()`,
        POLL,
      )
      .toHaveLength(1);
    expect(receiver.received).toEqual([]);
    await api(key, "PATCH", `/${id}`, { state: "enabled" });
    expect((await receiver.until(3)).map((each) => eventOf(each).seq)).toEqual([2, 3, 4]);
  });

  test("is tested in any state, with a signed delivery that is not repeated", async () => {
    const key = await newKey();
    const { id, secret } = await create(key);
    await api(key, "PATCH", `/${id}`, { state: "paused" });
    receiver.respond = (response) => response.writeHead(418).end("short and stout");
    const { body } = await api(key, "POST", `/${id}:test`, {});
    expect(body.outcome).toMatchObject({ status: 418, error: "The endpoint answered 418.", answer: "" });
    const [received] = receiver.received;
    if (!received) throw new Error("nothing was received");
    const event = verified(secret, received);
    expect(event).toMatchObject({ id: received.headers["webhook-id"], seq: 0, data: { webhook_id: id } });
    expectDescribed({ ...event, data: event.data as JsonObject });
    expect(await deliveries(key, id)).toEqual([]);
  });

  test("is tested by operators, who see the first 200 characters of the answer", async () => {
    const { id } = await create(await newKey());
    receiver.respond = (response) => response.writeHead(200).end("é".repeat(300));
    const { outcome } = await operator.testWebhook({ webhookId: id, reason: "test" });
    expect(outcome).toMatchObject({ status: 200, answer: "é".repeat(200) });
  });

  test("is tested by one call of an account at a time", async () => {
    const [key, foreign] = [await newKey(), await newKey()];
    const [slow, own] = [await create(key, { url: receiver.url("/slow") }), await create(key)];
    const other = await create(foreign);
    const held = Promise.withResolvers<void>();
    receiver.respond = (response, { path }) => {
      void (path === "/slow" ? held.promise : Promise.resolve()).then(() => response.writeHead(204).end());
    };
    const first = api(key, "POST", `/${slow.id}:test`, {});
    await receiver.until(1, "/slow");
    expect(await api(key, "POST", `/${own.id}:test`, {})).toMatchObject({
      status: 503,
      body: { error: { code: "overloaded" } },
    });
    expect((await api(foreign, "POST", `/${other.id}:test`, {})).body.outcome.status).toBe(204);
    held.resolve();
    expect((await first).body.outcome.status).toBe(204);
  });

  test("is tested although the endpoints of sixteen other accounts do not answer", async () => {
    const held = Promise.withResolvers<void>();
    receiver.respond = (response, { path }) => {
      void (path === "/" ? Promise.resolve() : held.promise).then(() => response.writeHead(204).end());
    };
    const tests = [];
    for (let i = 0; i < 16; i++) {
      const key = await newKey();
      const { id } = await create(key, { url: receiver.url(`/${i}`) });
      tests.push(api(key, "POST", `/${id}:test`, {}));
      await receiver.until(1, `/${i}`);
    }
    const key = await newKey();
    const { id } = await create(key);
    expect((await api(key, "POST", `/${id}:test`, {})).body.outcome.status).toBe(204);
    expect((await tests[0])?.body.outcome).toMatchObject({
      status: 0,
      error: "The endpoint did not answer within 2 s, and tests of other accounts were waiting.",
    });
    held.resolve();
    for (const { body } of await Promise.all(tests.slice(1))) expect(body.outcome.status).toBe(204);
  });

  test("is not delivered an event of another account", async () => {
    const [key, foreign] = [await newKey(), await newKey()];
    const { id } = await create(key);
    const listed = await fetch(`${app.url}/v1/events`, { headers: bearer(foreign.secret) });
    const { events } = (await listed.json()) as { events: { id: string }[] };
    expect(await api(key, "POST", `/${id}:redeliver`, { event_id: events[0]?.id })).toMatchObject({
      status: 404,
    });
    expect(await deliveries(key, id)).toEqual([]);
  });

  test("that is deleted leaves no queue, also if nothing is pending", async () => {
    const key = await newKey();
    const { id } = await create(key);
    await credit(key);
    await settled(key, id, "delivered", 1);
    await api(key, "DELETE", `/${id}`);
    const { owner } = app.database;
    await expect.poll(() => owner`SELECT 1 FROM vx.webhook_queues WHERE webhook_id = ${id}`).toHaveLength(0);
  });

  test("that is deleted while an attempt runs leaves no queue", async () => {
    const key = await newKey();
    const { id } = await create(key);
    const held = Promise.withResolvers<void>();
    receiver.respond = (response) => void held.promise.then(() => response.writeHead(204).end());
    await credit(key);
    await receiver.until(1);
    await api(key, "DELETE", `/${id}`);
    const { owner } = app.database;
    const rows = (table: string) => owner.unsafe(`SELECT 1 FROM vx.${table} WHERE webhook_id = '${id}'`);
    await expect.poll(() => rows("woken_queues")).toHaveLength(0);
    held.resolve();
    await expect.poll(() => rows("webhook_queues")).toHaveLength(0);
  });

  test("that is deleted receives nothing more", async () => {
    const key = await newKey();
    const { id } = await create(key);
    receiver.respond = (response) => response.writeHead(500).end();
    await credit(key);
    await settled(key, id, "pending", 1);
    await api(key, "DELETE", `/${id}`);
    await makeDue(id);
    const { owner } = app.database;
    await expect.poll(() => owner`SELECT 1 FROM vx.webhook_queues WHERE webhook_id = ${id}`, POLL).toHaveLength(0);
    expect(receiver.received).toHaveLength(1);
  });
});

test("a delivery of a server that ends is made by another one after a minute", async () => {
  const key = await newKey();
  const { id } = await create(key);
  const { owner } = app.database;
  receiver.respond = () => undefined;
  await credit(key);
  await receiver.until(1);
  const [claimed] = await owner`
    SELECT claimed_until - clock_timestamp() BETWEEN interval '50 seconds' AND interval '1 minute' AS known
    FROM vx.webhook_queues WHERE webhook_id = ${id}`;
  expect(claimed?.known).toBe(true);
  receiver.respond = (response) => response.writeHead(204).end();
  await owner`UPDATE vx.webhook_queues SET claimed_until = clock_timestamp() WHERE webhook_id = ${id}`;
  await settled(key, id, "delivered", 1);
  expect(receiver.received).toHaveLength(2);
});

test.each([
  ["VX_WEBHOOK_ALLOWED_CIDRS", "no account"],
  ["VX_WEBHOOK_CUSTOMER_CIDRS", "an account"],
])("%s applies to the webhooks of %s only", async (name, owner) => {
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
  await expect(admin.updateWebhook(change)).rejects.toThrow("The address is private, local or reserved.");
  await admin.deleteWebhook({ webhookId: change.webhookId, reason });
  await server.stop();
});

test("the listeners of the server receive nothing, although their addresses are allowed", async () => {
  const key = await newKey();
  for (const url of [app.url, app.adminUrl]) {
    const problem = "The address is private, local or reserved.";
    expect(await api(key, "POST", "", { url })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining(problem) } },
    });
    await expect(operator.createWebhook({ url, reason: "test" })).rejects.toThrow(problem);
  }
});

test("addresses of private ranges receive nothing unless they are allowed", async () => {
  const strict = await startTestApp({ database: app.database });
  const key = await newKey();
  const { id } = await create(key);
  const { port } = receiver;
  // Another server allowed the address before.
  for (const url of [`https://127.0.0.1:${port}/`, `http://127.0.0.1:${port}/`]) {
    await app.database.owner`UPDATE vx.webhooks SET url = ${url} WHERE id = ${id}`;
    const response = await fetch(`${strict.url}/v1/webhooks/${id}:test`, {
      method: "POST",
      headers: { ...bearer(key.secret), "content-type": "application/json" },
      body: "{}",
    });
    expect(((await response.json()) as { outcome: unknown }).outcome).toMatchObject({
      status: 0,
      error: expect.stringContaining("The address is private, local or reserved."),
    });
  }
  expect(receiver.received).toEqual([]);
  await api(key, "DELETE", `/${id}`);
  await strict.stop();
});
