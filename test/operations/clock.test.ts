import { fileURLToPath } from "node:url";
import postgres from "postgres";
import { expect, inject, test, vi } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { OPERATOR_TOKEN, startTestApp } from "../support/app.ts";
import { createTestDatabase } from "../support/database.ts";
import { loginIn } from "../support/embedded.ts";
import { bearer } from "../support/protocols.ts";
import { type Received, verified, WebhookReceiver } from "../support/webhook-receiver.ts";
import { generate, inDataFolder, ready, start, useDataFolder } from "./server-process.ts";

useDataFolder({ withDatabase: true });

const AHEAD = new URL("../support/clock-ahead.ts", import.meta.url).href;
const SERVER = fileURLToPath(new URL("../../src/vx.js", import.meta.url));
const AHEAD_S = 430 * 86_400;

test("a server whose clock is 430 days ahead writes entries of this month, signs deliveries with the time of now, and reports the difference", async () => {
  const server = start(
    {
      TEST_CLOCK_AHEAD_MS: String(AHEAD_S * 1_000),
      VX_ADMIN_TOKEN: OPERATOR_TOKEN,
      VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
      VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.0/8",
    },
    { command: [process.execPath, "--import", AHEAD, SERVER, "serve"] },
  );
  const secret = await server.line(/(vx_live_\w+)/);
  const url = await server.line(ready);
  expect((await generate(url, secret)).status).toBe(200);
  const sql = postgres({ ...loginIn(inDataFolder()), max: 1 });
  const months = await sql`
    SELECT DISTINCT kind::text, make_date(1970, 1, 1) + make_interval(months => month) = date_trunc('month', created_at) AS is_now
    FROM vx.ledger ORDER BY kind::text`;
  expect([...months]).toEqual([
    { kind: "credit", is_now: true },
    { kind: "generation", is_now: true },
  ]);
  expect(await sql`SELECT FROM vx.ledger_other_months`).toHaveLength(0);
  await sql.end();
  await vi.waitFor(() => expect(server.stderr()).toContain("the clock of this machine is not that of the database"));
  const adminUrl = server.adminUrl();
  const metrics = await (await fetch(`${adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) })).text();
  const [, offset] = /^vx_clock_offset_seconds\{cell=""\} (\S+)$/m.exec(metrics) ?? [];
  expect(Math.abs(Number(offset) - AHEAD_S)).toBeLessThan(60);

  const receiver = await new WebhookReceiver().start();
  const operate = async (method: string, request: object) => {
    const answer = await fetch(`${adminUrl}/vx.admin.v1.AdminService/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer(OPERATOR_TOKEN) },
      body: JSON.stringify(request),
    });
    return (await answer.json()) as { webhook: { id: string }; secret: string };
  };
  const { webhook, secret: signing } = await operate("CreateWebhook", { url: receiver.url(), reason: "test" });
  await operate("TestWebhook", { webhookId: webhook.id });
  const [delivery] = await receiver.until(1);
  expect(verified(signing, delivery as Received).type).toBe("webhook.test");
  await receiver.stop();
});

test("a server that may not move entries without a partition reports them", async () => {
  const database = await createTestDatabase();
  const lane = laneOfId("acct_1");
  await database.owner`SELECT vx.create_account(${TEST_CALLER}, ${lane}::smallint, 'acct_1', 'test', 'free')`;
  await database.owner`
    SELECT vx.move_balance(${TEST_CALLER}, ${lane}::smallint, 'acct_1', 'led_1', 1200, 'credit', 5, 'test', '1')`;
  const url = database.url.replace(/user=.*/, `user=vx_app&password=${inject("passwords").app}`);
  const app = await startTestApp({ database: { ...database, url } });
  await vi.waitFor(() => expect(app.logText()).toContain('"months":[{"month":"2070-01","entries":1}]'));
  const metrics = await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
  expect(await metrics.text()).toContain("\nvx_ledger_entries_without_partition 1\n");
  await app.stop();
  await database.drop();
});
