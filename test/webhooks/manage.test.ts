import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { WebhookService } from "../../gen/vx/v1/webhook_pb.js";
import { sendAnyJson } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

const { createWebhook, deleteWebhook, getWebhook, listWebhooks, rotateWebhook, updateWebhook } = WebhookService.method;
const url = "https://hooks.example.com/vx";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

const newKey = (scopes = ["webhooks"]) => createTestKey(operator, { scopes });

/** Calls a method with the key. */
function clientOf({ secret }: TestKey) {
  return <I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, request: MessageInitShape<I>) =>
    call(method, request, secret);
}

test("creates, reads, changes, rotates and deletes a webhook", async () => {
  const client = clientOf(await newKey());
  const { webhook, secret } = messageOf(await client(createWebhook, { url, types: ["balance.low"] }));
  expect(secret).toMatch(/^whsec_[0-9A-Za-z+/]{43}=$/);
  const id = expect.stringMatching(/^wh_/);
  expect(webhook).toMatchObject({ id, url, types: ["balance.low"], state: "enabled", disabledReason: "" });
  const webhookId = webhook?.id ?? "";
  const changed = { description: "alerts", state: "paused" };
  const expected = { message: { webhook: { ...changed, url, types: ["balance.low"] } } };
  expect(await client(updateWebhook, { webhookId, ...changed })).toMatchObject(expected);
  const rotated = messageOf(await client(rotateWebhook, { webhookId, overlapSeconds: 60 }));
  expect(rotated.secret).not.toBe(secret);
  expect(rotated.webhook?.previousExpiresAt).toBeDefined();
  const listed = await client(listWebhooks, {});
  expect(listed).toMatchObject({ message: { webhooks: [{ id: webhookId, description: "alerts" }] } });
  expect(JSON.stringify(listed, (_, value) => String(value))).not.toContain("whsec_");
  expect(await client(deleteWebhook, { webhookId })).toMatchObject({ ok: true });
  expect(await client(getWebhook, { webhookId })).toMatchObject({ reason: "not_found" });
});

test("finds no webhook of another account", async () => {
  const ofOther = clientOf(await newKey());
  const { webhook } = messageOf(await clientOf(await newKey())(createWebhook, { url }));
  const request = { webhookId: webhook?.id ?? "", url, eventId: `evt_${"0".repeat(26)}` };
  for (const method of WebhookService.methods as DescMethodUnary[]) {
    if (method.name === "CreateWebhook" || method.name === "ListWebhooks") continue;
    expect(await ofOther(method, request), method.name).toMatchObject({ reason: "not_found" });
  }
});

test("null clears the types and the description, and neither the address nor the state", async () => {
  const { secret } = await newKey();
  const send = (verb: string, path: string, body: unknown) =>
    sendAnyJson(app.url, { verb, path: `/v1/webhooks${path}`, body, secret });
  const { body } = await send("POST", "", { url, types: ["key.created"], description: "x" });
  const path = `/${body.webhook.id}`;
  const cleared = { body: { webhook: { types: [], description: "" } } };
  expect(await send("PATCH", path, { types: null, description: null })).toMatchObject(cleared);
  for (const fields of [{ url: null }, { state: null }, { state: "disabled" }])
    expect(await send("PATCH", path, fields)).toMatchObject({ status: 400 });
});

// test/webhooks/addresses.test.ts has the addresses that are refused.
test.each([
  ["url", { url: "https://0x7f.0.00000.1/" }],
  ["url", { url: `https://hooks.example.com/${"x".repeat(2_100)}` }],
  ["types[0]", { types: ["balance.high"] }],
  ["description", { description: " " }],
  ["description", { description: "\u202e" }],
])("a wrong %s is refused: %j", async (field, fields) => {
  expect(await clientOf(await newKey())(createWebhook, { url, ...fields })).toMatchObject({ fields: [field] });
});

test("an account has at most 16 webhooks", async () => {
  const client = clientOf(await newKey());
  const created = await Promise.all(Array.from({ length: 18 }, () => client(createWebhook, { url })));
  const reasons = created.map((outcome) => (outcome.ok ? "ok" : outcome.reason));
  expect(reasons.sort()).toEqual([...Array(16).fill("ok"), ...Array(2).fill("webhook_limit_reached")]);
});

test("operators create webhooks of an account and of all accounts, and the log has the changes without their addresses", async () => {
  const { accountId } = await newKey();
  const reason = "test";
  const own = await operator.createWebhook({ accountId, url: `${url}?token=secret`, reason });
  const all = await operator.createWebhook({ url, types: ["price.changed"], reason });
  expect(own.webhook).toMatchObject({ accountId });
  expect(all.webhook).toMatchObject({ accountId: "", id: expect.stringMatching(/^who_/) });
  const webhookId = all.webhook?.id ?? "";
  expect((await operator.listWebhooks({})).webhooks.map(({ id }) => id)).toContain(webhookId);
  expect((await operator.listWebhooks({ accountId })).webhooks.map(({ id }) => id)).toEqual([own.webhook?.id]);
  await operator.updateWebhook({ webhookId, state: "paused", reason, updateMask: { paths: ["state"] } });
  await operator.rotateWebhook({ webhookId, overlapSeconds: 0, reason });
  await operator.redeliver({ webhookId, from: { seconds: 0n }, reason });
  await operator.deleteWebhook({ webhookId, reason });
  const events = (await operator.listOperatorEvents({ pageSize: 10 })).events.slice(0, 6);
  const methods = ["DeleteWebhook", "Redeliver", "RotateWebhook", "UpdateWebhook", "CreateWebhook", "CreateWebhook"];
  expect(events.map(({ method }) => method)).toEqual(methods);
  expect(JSON.stringify(events, (_, value) => String(value))).not.toContain("token=secret");
});
