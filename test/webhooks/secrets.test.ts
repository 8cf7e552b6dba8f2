import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { vx } from "../cli/support.ts";
import { sendAnyJson } from "../support/any-json.ts";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { dumpTables, postgresLog } from "../support/database.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const app = useOwnApp({
  env: { VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8", VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.0/8", VX_LOG_LEVEL: "debug" },
});
const receiver = new WebhookReceiver();
const folder = createTemporaryFolder("export");

beforeAll(() => receiver.start());
afterAll(async () => {
  await receiver.stop();
  folder.remove();
});

test("no table but that of webhooks, and no answer, log, metric or export has the secret of a webhook", async () => {
  const operator = operatorOf(app);
  const key = await createTestKey(operator, { scopes: ["read", "webhooks"] });
  const { accountId } = key;
  const answers: unknown[] = [];
  const secrets: string[] = [];
  const send = async (verb: string, path: string, body?: unknown) => {
    const answer = await sendAnyJson(app.url, { verb, path: `/v1/webhooks${path}`, body, secret: key.secret });
    const { secret, ...rest } = answer.body;
    if (secret !== undefined) secrets.push(secret);
    answers.push(rest);
    return answer.body;
  };
  // It answers with all that it knows.
  receiver.respond = (response, { headers }) => response.writeHead(500).end(`${secrets.join(" ")} ${JSON.stringify(headers)}`);
  const { webhook } = await send("POST", "", { url: receiver.url(), types: ["credit.posted"] });
  await send("POST", `/${webhook.id}:rotate`, { overlap_seconds: 60 });
  await send("POST", `/${webhook.id}:rotate`, { overlap_seconds: -1 });
  await send("PATCH", `/${webhook.id}`, { url: `https://10.0.0.1/?s=${secrets[0]}` });
  await send("POST", `/${webhook.id}:test`, {});
  const ofOperators = await operator.createWebhook({ url: receiver.url("/all"), reason: "test" });
  const operatorsId = ofOperators.webhook?.id ?? "";
  const rotated = await operator.rotateWebhook({ webhookId: operatorsId, overlapSeconds: 60, reason: "test" });
  secrets.push(ofOperators.secret, rotated.secret);
  await operator.creditAccount({ accountId, amountMicros: 1n, reason: "test", idempotencyKey: "1" });
  await Promise.all([receiver.until(2), receiver.until(1, "/all")]);
  await expect.poll(async () => (await send("GET", `/${webhook.id}/deliveries`)).deliveries[0].attempts).toBe(1);
  await send("GET", "");
  const file = join(folder.path, "account.tar.gz");
  const { code } = await vx(["accounts", "export", accountId, "--output", file], {
    VX_ADMIN_URL: app.adminUrl,
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
  });
  expect(code).toBe(0);
  const metrics = await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
  const stored = await app.database.owner<{ text: string }[]>`SELECT w::text AS text FROM vx.webhooks w`;
  const rows = new Set(stored.map(({ text }) => text));
  const written = {
    tables: (await dumpTables(app.database))
      .split("\n")
      .filter((line) => !rows.has(line))
      .join("\n"),
    "the server's log": app.logText(),
    "PostgreSQL's log": postgresLog(),
    metrics: await metrics.text(),
    export: gunzipSync(readFileSync(file)).toString("latin1"),
    answers: JSON.stringify(answers),
  };
  // The search must find these, otherwise it searches the wrong places.
  expect([...rows].join("\n")).toContain(secrets[0]);
  for (const where of ["tables", "export", "answers"] as const) expect(written[where]).toContain(webhook.id);
  expect(new Set(secrets).size).toBe(4);
  for (const secret of secrets)
    for (const [where, text] of Object.entries(written)) {
      const plain = secret.slice("whsec_".length, -1);
      expect(text.includes(plain), where).toBe(false);
      expect(text.includes(Buffer.from(plain, "base64").toString("hex")), where).toBe(false);
    }
});
