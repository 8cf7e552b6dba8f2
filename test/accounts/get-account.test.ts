import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test, vi } from "vitest";
import { sendAnyJson } from "../support/any-json.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { createPaidKey, usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";

const TOP_UP_URL = "https://pay.example.com/top-up";

const app = useOwnApp({ env: { VX_TOP_UP_URL: TOP_UP_URL } });
const key = usePaidKey(app);

const getRest = (secret: string) => sendAnyJson(app.url, { verb: "GET", path: "/v1/account", secret });

test("REST has the account and the key", async () => {
  const { status, body } = await getRest(key.secret);
  expect(status).toBe(200);
  expect(body).toEqual({
    id: key.accountId,
    name: expect.any(String),
    state: "active",
    balance_micros: 10_000_000,
    balance: "$10.00",
    held_micros: 0,
    held: "$0.00",
    available_micros: 10_000_000,
    available: "$10.00",
    plan: expect.any(String),
    key: expect.objectContaining({ id: key.id, state: "active", masked_key: expect.stringContaining("…") }),
    top_up_url: TOP_UP_URL,
    owed_micros: 0,
    owed: "$0.00",
    low_balance_micros: null,
    grants: [],
  });
});

test("the amount that a running call holds is not available", async () => {
  const { secret } = await createPaidKey(operatorOf(app));
  const running = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(secret), "content-type": "application/json" },
    body: JSON.stringify({
      model: "vx-sandbox-small",
      max_tokens: 4_000,
      messages: [{ role: "user", content: "[[tokens=4000 delay_ms=50]] hi" }],
      stream: true,
    }),
  });
  const { body } = await getRest(secret);
  expect(body.held_micros).toBeGreaterThan(0);
  expect(body.available_micros).toBe(body.balance_micros - body.held_micros);
  await running.body?.cancel();
});

test("the credits that expire or are promotional are in the order in which charges take them", async () => {
  const { secret, accountId } = await createTestKey(operatorOf(app));
  const operator = operatorOf(app);
  const expiresAt = timestampFromDate(new Date("2099-02-01T00:00:00Z"));
  const credit = { accountId, amountMicros: 5_000_000n, reason: "welcome" };
  await operator.creditAccount({ ...credit, idempotencyKey: "1", promotional: true });
  await operator.creditAccount({ ...credit, idempotencyKey: "2", expiresAt });
  const { body } = await getRest(secret);
  const grant = { id: expect.stringMatching(/^led_/), amount_micros: 5_000_000, remaining_micros: 5_000_000 };
  expect(body.grants).toEqual([
    { ...grant, expires_at: "2099-02-01T00:00:00Z", promotional: false },
    { ...grant, expires_at: null, promotional: true },
  ]);
});

test("the balance is that of the moment at which the credits are read", async () => {
  const operator = operatorOf(app);
  const { secret, accountId } = await createTestKey(operator);
  const credit = { accountId, amountMicros: 5_000_000n, reason: "welcome", promotional: true };
  await operator.creditAccount({ ...credit, idempotencyKey: "1" });
  const { answer } = await app.database.owner.begin(async (sql) => {
    // The key is read with the account, and waits: a credit is added before the credits are read.
    await sql`LOCK TABLE vx.previous_secrets IN ACCESS EXCLUSIVE MODE`;
    const reading = getRest(secret);
    await vi.waitFor(async () => {
      const waiting = await app.database.owner`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'view_keys'`;
      expect(waiting.length).toBeGreaterThan(0);
    });
    await operator.creditAccount({ ...credit, idempotencyKey: "2" });
    return { answer: reading };
  });
  const { body } = await answer;
  const granted = body.grants.reduce(
    (sum: number, { remaining_micros: micros }: Record<string, number>) => sum + (micros ?? NaN),
    0,
  );
  expect([granted, body.balance_micros, body.available_micros]).toEqual([10_000_000, 10_000_000, 10_000_000]);
});

test("the credits of accounts without any are not read", async () => {
  const { owner } = app.database;
  const { secret, accountId } = await createTestKey(operatorOf(app));
  const credit = { accountId, amountMicros: 5_000_000n, reason: "welcome", promotional: true };
  await owner`REVOKE EXECUTE ON FUNCTION vx.account_grants FROM vx_app`;
  try {
    expect((await getRest(secret)).body).toMatchObject({ grants: [] });
    await operatorOf(app).creditAccount({ ...credit, idempotencyKey: "1" });
    expect((await getRest(secret)).status).not.toBe(200);
  } finally {
    await owner`GRANT EXECUTE ON FUNCTION vx.account_grants TO vx_app`;
  }
});
