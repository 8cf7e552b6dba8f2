import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { sendAnyJson } from "../support/any-json.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { COST_MICROS, HELD_MICROS, MODEL, SANDBOX_MODEL, useMetered } from "../support/metered.ts";
import { expectDescribed } from "../support/webhook-bodies.ts";

const metered = useMetered();

const send = (secret: string, verb: string, path: string, body?: unknown) =>
  sendAnyJson(metered.app.url, { verb, path, secret, body });

/** The events of the account, with data as their messages describe. */
async function eventsOf({ secret }: Pick<TestKey, "secret">, query = "") {
  const { status, body } = await send(secret, "GET", `/v1/events${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  for (const { created_at: timestamp, ...event } of body.events) expectDescribed({ ...event, timestamp });
  return body.events as readonly { type: string; seq: number; data: JsonObject }[];
}

const typesOf = (events: readonly { type: string }[]) => events.map(({ type }) => type);

const PROMPT = { model: MODEL, messages: [{ role: "user", content: "Say hello to the world" }], max_tokens: 10 };
const generate = (secret: string) => send(secret, "POST", "/v1/generate", PROMPT);
/** A change of the balance, each time with the same idempotency key. */
const move = ({ accountId }: TestKey, reason: string) => ({ accountId, reason, idempotencyKey: reason });

const sql = () => metered.app.database.owner;

/** What a server does after a refusal of a call that needs 46 micros. Returns the seconds until it does so again. */
async function reportDepleted({ accountId }: TestKey) {
  const [row] = await sql()`SELECT vx.report_depleted(vx.lane_of(${accountId}), ${accountId}, 46) AS wait`;
  return row?.wait;
}

describe("the balance", () => {
  test("a credit and an adjustment are events with their entries, once per idempotency key", async () => {
    const key = await metered.payer(100n);
    for (let i = 0; i < 2; i++) await metered.operator.adjustAccount({ ...move(key, "refund"), amountMicros: -40n });
    const posted = await eventsOf(key, "?types=credit.posted,adjustment.posted");
    const [adjusted, credited] = (await metered.operator.listLedgerEntries(key)).entries;
    const credit = { entry_id: credited?.id, amount_micros: 100, balance_after_micros: 100, reason: "test" };
    const adjustment = { entry_id: adjusted?.id, amount_micros: -40, balance_after_micros: 60, reason: "refund" };
    expect(posted).toMatchObject([
      { type: "credit.posted", data: credit },
      { type: "adjustment.posted", data: adjustment },
    ]);
  });

  test("a charge that crosses the threshold is one event, and the next one follows a credit", async () => {
    const key = await metered.payer(100n);
    const { secret } = await createTestKey(metered.operator, { ...key, scopes: ["billing"] });
    const set = await send(secret, "PATCH", "/v1/account", { low_balance_micros: 70 });
    expect(set).toMatchObject({ status: 200, body: { account: { low_balance_micros: 70 } } });
    const low = () => eventsOf(key, "?types=balance.low");
    expect((await generate(key.secret)).status).toBe(200);
    expect(await low()).toEqual([]);
    await generate(key.secret);
    const balanceMicros = 100 - 2 * Number(COST_MICROS);
    expect(await low()).toMatchObject([{ data: { balance_micros: balanceMicros, low_balance_micros: 70 } }]);
    // 24 micros are left for a hold of 46: the call is refused, and nothing is charged.
    await metered.operator.adjustAccount({ ...move(key, "refund"), amountMicros: -40n });
    await generate(key.secret);
    expect(await low()).toHaveLength(1);
    await metered.operator.creditAccount({ ...move(key, "more"), amountMicros: 60n });
    await generate(key.secret);
    expect(await low()).toHaveLength(2);
    await send(secret, "PATCH", "/v1/account", { low_balance_micros: null });
    await metered.operator.creditAccount({ ...move(key, "further"), amountMicros: 60n });
    await generate(key.secret);
    await generate(key.secret);
    expect(await low()).toHaveLength(2);
  });

  test("charges that take a limit to 80 and to 100 % are one event each", async () => {
    const key = await metered.payer(10_000n);
    const owner = { case: "accountId", value: key.accountId } as const;
    // The sandbox uses all tokens that the call holds after they are counted.
    const call = async () => {
      const messages = [{ role: "user", content: "[[tokens=10]] hi" }];
      const body = { model: SANDBOX_MODEL, messages, max_tokens: 10, user: "ada" };
      expect((await send(key.secret, "POST", "/v1/generate", body)).status).toBe(200);
    };
    await call();
    const spent = 10_000 - (await metered.account(key)).balance;
    const limits = [
      { metric: "cost", window: "month", amount: BigInt(5 * spent) },
      { metric: "cost", window: "hour", amount: BigInt(5 * spent) },
      { metric: "generations", window: "day", amount: 5n },
    ];
    for (const limit of limits) await metered.operator.setLimit({ owner, limit });
    const reached = () => eventsOf(key, "?types=limit.threshold");
    await call();
    await call();
    expect(await reached()).toEqual([]);
    await call();
    await call();
    const limit = {
      id: expect.stringMatching(/^lim_/),
      metric: "cost",
      window: "month",
      model: "",
      per: "",
      owner: "account",
      owner_id: key.accountId,
      amount: 5 * spent,
      resets_at: expect.any(String),
    };
    expect((await reached()).map(({ data }) => data)).toEqual([
      { percent: 80, user: "", limit: { ...limit, spent: 4 * spent } },
      { percent: 100, user: "", limit: { ...limit, spent: 5 * spent } },
    ]);
  });

  test("an alert refuses no call, holds nothing, and is one event at 80 and at 100 % of its amount", async () => {
    const key = await metered.payer(10_000n);
    const owner = { case: "accountId", value: key.accountId } as const;
    const alerts = () => eventsOf(key, "?types=limit.threshold");
    const listed = async () => (await metered.operator.listLimits({ owner })).limits.filter(({ id }) => id !== "");
    await generate(key.secret);
    const spent = 10_000n - BigInt((await metered.account(key)).balance);
    const limit = { metric: "cost_alert", window: "month", amount: 3n * spent - 1n };
    await metered.operator.setLimit({ owner, limit });
    await metered.operator.setLimit({ owner, limit: { ...limit, metric: "cost", amount: 5_000n } });
    expect(await listed()).toMatchObject([{ metric: "cost" }, { spent, held: 0n, remaining: 2n * spent - 1n }]);
    await generate(key.secret);
    expect(await alerts()).toEqual([]);
    // The alert does not cover the next call.
    expect((await generate(key.secret)).status).toBe(200);
    const alert = { metric: "cost_alert", window: "month", spent: Number(3n * spent) };
    expect(await alerts()).toMatchObject([80, 100].map((percent) => ({ data: { percent, limit: alert } })));
    expect((await generate(key.secret)).status).toBe(200);
    expect(await alerts()).toHaveLength(2);
    expect((await listed())[1]).toMatchObject({ metric: "cost_alert", spent: 4n * spent, held: 0n, remaining: 0n });
    expect((await metered.account(key)).held).toBe(0);
  });

  test.each(["day", "week", "month", "total"])("an alert with the window %j is written when it is reached", async (window) => {
    const key = await metered.payer(10_000n);
    const owner = { case: "accountId", value: key.accountId } as const;
    await metered.operator.setLimit({ owner, limit: { metric: "cost_alert", window, amount: 1n } });
    expect((await generate(key.secret)).status).toBe(200);
    const written = [80, 100].map((percent) => ({ data: { percent, limit: { window } } }));
    expect(await eventsOf(key, "?types=limit.threshold")).toMatchObject(written);
  });

  test("an alert of a key counts its calls, and needs a window of a day or longer and an amount", async () => {
    const key = await metered.payer(10_000n);
    const create = (limit: object) => send(key.secret, "POST", "/v1/keys", { name: "own", limits: [limit] });
    const alert = { metric: "cost_alert", window: "day", amount: 1 };
    for (const [limit, param] of [
      [{ ...alert, window: "hour" }, "limits[0].window"],
      [{ ...alert, window: "" }, "limits[0].window"],
      [{ ...alert, amount: 0 }, "limits[0].amount"],
    ] as const)
      expect(await create(limit)).toMatchObject({ status: 400, body: { error: { param } } });
    const { secret } = (await create(alert)).body;
    expect((await generate(key.secret)).status).toBe(200);
    expect(await eventsOf(key, "?types=limit.threshold")).toEqual([]);
    expect((await generate(secret)).status).toBe(200);
    const ofKey = [80, 100].map((percent) => ({ data: { percent, limit: { owner: "key" } } }));
    expect(await eventsOf(key, "?types=limit.threshold")).toMatchObject(ofKey);
  });

  test("a refusal without running calls is one event per hour, over all servers", async () => {
    const key = await metered.payer(HELD_MICROS - 40n);
    for (let i = 0; i < 2; i++) expect((await generate(key.secret)).status).toBe(402);
    // Each server reports again only after this time.
    expect(await reportDepleted(key)).toBe(3600);
    const depleted = () => eventsOf(key, "?types=balance.depleted");
    expect(await depleted()).toMatchObject([{ data: { balance_micros: 6 } }]);
    await sql()`UPDATE vx.events SET created_at = created_at - interval '61 minutes' WHERE account_id = ${key.accountId}`;
    const other = await metered.payer(1n);
    await generate(other.secret);
    expect(await eventsOf(other, "?types=balance.depleted")).toHaveLength(1);
    expect(await reportDepleted(key)).toBe(3600);
    expect(await depleted()).toHaveLength(2);
  });

  test("a refusal because running calls hold the balance is no event", async () => {
    const key = await metered.payer(HELD_MICROS + 10n);
    expect(await reportDepleted(key)).toBe(0);
    expect(typesOf(await eventsOf(key))).not.toContain("balance.depleted");
  });
});

describe("keys", () => {
  test("each change of a key is an event", async () => {
    const key = await metered.payer(0n);
    const { body } = await send(key.secret, "POST", "/v1/keys", { name: "child", scopes: ["read", "keys"] });
    const { api_key: child, secret } = body;
    await send(key.secret, "PATCH", `/v1/keys/${child.id}`, { name: "renamed", rate_limit_rpm: 5 });
    await send(key.secret, "POST", `/v1/keys/${child.id}:rotate`, { overlap_seconds: 60 });
    await metered.operator.rotateKey({ keyId: child.id, overlapSeconds: 60 });
    await send(key.secret, "POST", `/v1/keys/${child.id}:revoke`, {});
    await send(key.secret, "POST", `/v1/keys/${child.id}:revoke`, {});
    await metered.operator.revokeKey({ keyId: child.id });
    const own = { key_id: child.id, name: "renamed" };
    const overlap = { previous_expires_at: expect.any(String) };
    expect(secret).toContain("vx_live_");
    expect((await eventsOf(key)).filter(({ data }) => JSON.stringify(data).includes(child.id))).toMatchObject([
      { type: "key.created", data: { key_id: child.id, name: "child" } },
      { type: "key.updated", data: { ...own, fields: ["name", "rate_limit_rpm"] } },
      { type: "key.rotated", data: { ...own, ...overlap } },
      { type: "key.rotated", data: { ...own, ...overlap } },
      { type: "key.revoked", data: { ...own, by: "key" } },
    ]);
  });

  test("an operator's revocation names the operator, but not which one", async () => {
    const key = await metered.payer(0n);
    const { id } = await createTestKey(metered.operator, key);
    await metered.operator.revokeKey({ keyId: id, reason: "secret reason" });
    const [revoked] = await eventsOf(key, "?types=key.revoked");
    expect(revoked?.data).toEqual({ key_id: id, name: "test", by: "operator" });
  });

  test("an expiry is an event 7 days and 1 day before, once each", async () => {
    const key = await metered.payer(0n);
    const { id } = await createTestKey(metered.operator, key);
    const expireIn = (interval: string) =>
      sql()`UPDATE vx.keys SET expires_at = clock_timestamp() + ${interval}::text::interval WHERE id = ${id}`;
    const warn = async () => {
      await sql()`SELECT vx.warn_of_expiry(k.lane, k.id) FROM vx.expiring_keys(1000) k`;
      return (await eventsOf(key, "?types=key.expiring")).map(({ data }) => data.days);
    };
    await expireIn("8 days");
    expect(await warn()).toEqual([]);
    await expireIn("6 days");
    expect(await warn()).toEqual([7]);
    expect(await warn()).toEqual([7]);
    await expireIn("20 hours");
    expect(await warn()).toEqual([7, 1]);
    expect(await warn()).toEqual([7, 1]);
  });

  test("a key that is created for less than 7 days has no event for them", async () => {
    const key = await metered.payer(0n);
    const expiry = new Date(Date.now() + 3 * 86_400_000).toISOString();
    const { status } = await send(key.secret, "POST", "/v1/keys", { name: "short", expires_at: expiry });
    expect(status).toBe(200);
    await sql()`SELECT vx.warn_of_expiry(k.lane, k.id) FROM vx.expiring_keys(1000) k`;
    expect(await eventsOf(key, "?types=key.expiring")).toEqual([]);
  });
});

test("a suspension and its end are events, which a suspended account can read", async () => {
  const key = await metered.payer(0n);
  const { accountId } = key;
  await metered.operator.suspendAccount({ accountId, reason: "overdue" });
  await metered.operator.suspendAccount({ accountId, reason: "overdue" });
  expect(typesOf(await eventsOf(key, "?types=account.suspended"))).toHaveLength(1);
  await metered.operator.resumeAccount({ accountId });
  await metered.operator.resumeAccount({ accountId });
  expect((await eventsOf(key)).slice(-2)).toMatchObject([
    { type: "account.suspended", data: {} },
    { type: "account.resumed", data: {} },
  ]);
});

test("numbers have no gaps, and an event of a change that is rolled back does not exist", async () => {
  const key = await metered.payer(10n);
  const { accountId } = key;
  await sql()
    .begin(async (transaction) => {
      await transaction`SET LOCAL search_path = vx`;
      await transaction`SELECT write_event(lane_of(${accountId}), ${accountId}, 'account.resumed', '{}')`;
      throw new Error("rolled back");
    })
    .catch(() => undefined);
  await metered.operator.suspendAccount({ accountId, reason: "overdue" });
  const events = await eventsOf(key);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  expect(typesOf(events)).toEqual(["credit.posted", "key.created", "account.suspended"]);
});
