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
  return { ...key, readOnly };
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
}

/** A charge at a time in the past, which must be on a quarter of an hour. */
export async function insertCharge(
  app: TestApp,
  { accountId, id }: TestKey,
  timeMs: number,
  micros: number,
): Promise<void> {
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
