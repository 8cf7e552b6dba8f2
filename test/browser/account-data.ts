import { createIds } from "../../src/domain/ids.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { QUARTER_MS } from "../../src/domain/periods.ts";
import type { TestApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";

/** Markup and length that a page must show as text, within its window. */
export const HOSTILE_NAME = `<img src=x onerror="alert(1)"> ${"long-name-".repeat(6)}`;

/** A spreadsheet would run this reason as a formula. */
const REASONS: Readonly<Record<number, string>> = { 27: "=1+1", 29: HOSTILE_NAME };

/** An account with usage of many days, several models and keys, and more ledger entries than a page shows. */
export type FullAccount = TestKey & { readonly readOnly: TestKey };

export async function createFullAccount(app: TestApp): Promise<FullAccount> {
  const operator = operatorOf(app);
  const key = await createPaidKey(operator);
  const { accountId } = key;
  await operator.createKey({ accountId, name: HOSTILE_NAME, scopes: ["read"] });
  const readOnly = await createTestKey(operator, { accountId, scopes: ["read"] });
  for (const number of Array.from({ length: 30 }).keys()) {
    await operator.creditAccount({
      accountId,
      amountMicros: BigInt(number * 1_234 + 1),
      reason: REASONS[number] ?? `invoice ${number}`,
      idempotencyKey: `credit-${number}`,
    });
  }
  await insertUsage(app, key);
  await insertFailures(app, key);
  return { ...key, readOnly };
}

/** Thirty failed calls of the last half hour, and a minute with more of them. */
export async function insertFailures(app: TestApp, { accountId, id: keyId }: TestKey): Promise<void> {
  const lane = laneOfId(accountId);
  for (let minute = 30; minute > 0; minute--) {
    const at = new Date(Date.now() - minute * 60_000);
    const isRefusal = minute % 3 === 0;
    const [status, code] = isRefusal ? [402, "insufficient_balance"] : [502, "upstream_error"];
    await app.database.owner`
      INSERT INTO vx.failures (lane, account_id, id, created_at, key_id, method, model, upstream, status, code, message, latency_ms, request_id)
      VALUES (${lane}, ${accountId}, ${createIds(() => at.getTime()).failure(lane)}, ${at}, ${keyId},
        'POST /v1/generate', 'vx-sandbox-small', ${isRefusal ? "" : "openai 10.0.0.7/v1 acme"},
        ${status}, ${code}, ${`${HOSTILE_NAME} ${minute}`}, 12, ${`req_${minute}`})`;
  }
  await app.database.owner`
    INSERT INTO vx.failures (lane, account_id, id, created_at, received, omitted)
    SELECT lane, account_id, id || '0', created_at, 600, 41234 FROM vx.failures
    WHERE account_id = ${accountId} ORDER BY id DESC LIMIT 1`;
}

/** Usage of the last 60 days with two keys and eight models, directly in the table. */
async function insertUsage(app: TestApp, { accountId, id }: TestKey): Promise<void> {
  await app.database.owner`
    INSERT INTO vx.usage_quarters
    SELECT vx.lane_of(${accountId}), ${accountId}, extract(epoch FROM now())::bigint / 900 - 96 * d,
           CASE WHEN m % 3 = 2 THEN 'key_batch' ELSE ${id} END,
           (ARRAY['acme-large', 'acme-small', 'acme-vision', 'acme-embed', 'acme-code', 'acme-mini', 'acme-2', 'acme-1'])[m],
           '', 1, n / 9, n * 11, 0, 0, n * 7, 0, 0, 0, n * 977 / m
    FROM generate_series(0, 59) d, generate_series(1, 8) m,
         LATERAL (SELECT ((60 - d) * (17 + (d * 7 + m * 5) % 13) * 40 / (m * m))::bigint AS n) a
    WHERE (d + m) % 7 <> 0`;
  // More end users than the page lists.
  await app.database.owner`
    INSERT INTO vx.usage_quarters
    SELECT vx.lane_of(${accountId}), ${accountId}, extract(epoch FROM now())::bigint / 900, ${id}, 'acme-mini',
           CASE n WHEN 1 THEN ${HOSTILE_NAME} ELSE 'user-' || n END, 1, 1, 10, 0, 0, 10, 0, 0, 0, (131 - n) * 10
    FROM generate_series(1, 130) n`;
}

/** A charge at a time in the past, which must be on a quarter of an hour. */
export async function insertCharge(app: TestApp, { accountId, id }: TestKey, timeMs: number, micros: number): Promise<void> {
  await app.database.owner`
    INSERT INTO vx.usage_quarters
    VALUES (vx.lane_of(${accountId}), ${accountId}, ${timeMs / QUARTER_MS}, ${id}, 'acme-large', '', 1,
            1, 1, 0, 0, 1, 0, 0, 0, ${micros})`;
}

export async function generate(app: TestApp, secret: string, text: string): Promise<void> {
  const response = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: text }] }),
  });
  if (!response.ok) throw new Error(await response.text());
}
