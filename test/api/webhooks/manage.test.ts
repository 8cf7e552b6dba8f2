import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { WebhookService } from "../../../gen/vx/v1/webhook_pb.js";
import { sendAnyJson } from "../../support/any-json.ts";
import { useTestApp } from "../../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../../support/fixtures.ts";
import { callOf } from "../../support/protocols.ts";

const { createWebhook, deleteWebhook, getWebhook, listWebhooks, rotateWebhook, updateWebhook } = WebhookService.method;
const URL_OF_OTHERS = "https://hooks.example.com/vx";

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
  const created = await client(createWebhook, { url: URL_OF_OTHERS, types: ["balance.low"] });
  if (!created.ok) throw new Error(created.text);
  const { webhook, secret } = created.message;
  expect(secret).toMatch(/^whsec_[0-9A-Za-z+/]{43}=$/);
  expect(webhook).toMatchObject({
    id: expect.stringMatching(/^wh_/),
    url: URL_OF_OTHERS,
    types: ["balance.low"],
    state: "enabled",
    disabledReason: "",
  });
  const webhookId = webhook?.id ?? "";
  const changes = { description: "alerts", state: "paused" };
  const changed = await client(updateWebhook, { webhookId, ...changes });
  expect(changed).toMatchObject({
    message: { webhook: { ...changes, url: URL_OF_OTHERS, types: ["balance.low"] } },
  });
  const rotated = await client(rotateWebhook, { webhookId, overlapSeconds: 60 });
  if (!rotated.ok) throw new Error(rotated.text);
  expect(rotated.message.secret).not.toBe(secret);
  expect(rotated.message.webhook?.previousExpiresAt).toBeDefined();
  const listed = await client(listWebhooks, {});
  expect(listed).toMatchObject({ message: { webhooks: [{ id: webhookId, description: "alerts" }] } });
  expect(JSON.stringify(listed, (_, value) => String(value))).not.toContain("whsec_");
  expect(await client(deleteWebhook, { webhookId })).toMatchObject({ ok: true });
  expect(await client(getWebhook, { webhookId })).toMatchObject({ reason: "not_found" });
});

test("needs the scope webhooks, and finds no webhook of another account", async () => {
  const [owner, other, reader] = [await newKey(), await newKey(), await newKey(["read", "keys", "billing"])];
  const [ofOwner, ofOther, ofReader] = [clientOf(owner), clientOf(other), clientOf(reader)];
  const created = await ofOwner(createWebhook, { url: URL_OF_OTHERS });
  const webhookId = (created.ok && created.message.webhook?.id) || "";
  for (const method of Object.values(WebhookService.method)) {
    const unary = method as DescMethodUnary;
    const request = { webhookId, url: URL_OF_OTHERS, eventId: `evt_${"0".repeat(26)}` };
    expect(await ofReader(unary, request), method.name).toMatchObject({
      reason: "insufficient_scope",
    });
    if (method.name === "CreateWebhook" || method.name === "ListWebhooks") continue;
    expect(await ofOther(unary, request), method.name).toMatchObject({ reason: "not_found" });
  }
});

describe("over REST", () => {
  const send = ({ secret }: TestKey, verb: string, path: string, body?: unknown) =>
    sendAnyJson(app.url, { verb, path: `/v1/webhooks${path}`, body, secret });

  test("null clears the types and the description, and neither the address nor the state", async () => {
    const key = await newKey();
    const { body } = await send(key, "POST", "", {
      url: URL_OF_OTHERS,
      types: ["key.created"],
      description: "x",
    });
    const path = `/${body.webhook.id}`;
    expect(await send(key, "PATCH", path, { types: null, description: null })).toMatchObject({
      body: { webhook: { types: [], description: "" } },
    });
    for (const field of ["url", "state"])
      expect(await send(key, "PATCH", path, { [field]: null })).toMatchObject({ status: 400 });
    expect(await send(key, "PATCH", path, { state: "disabled" })).toMatchObject({ status: 400 });
  });

  test.each([
    ["a private address", "https://10.0.0.1/"],
    ["a short form", "https://127.1/"],
    ["a hexadecimal form", "https://0x7f000001/"],
    ["an octal form", "https://0177.0.0.1/"],
    ["a decimal form", "https://2130706433/"],
    ["the unspecified address", "https://0.0.0.0/"],
    ["a link-local address", "https://169.254.169.254/latest/meta-data"],
    ["a shared address", "https://100.64.0.1/"],
    ["IPv6 loopback", "https://[::1]/"],
    ["an IPv4 address in IPv6", "https://[::ffff:127.0.0.1]/"],
    ["the same in hexadecimal", "https://[::ffff:7f00:1]/"],
    ["NAT64", "https://[64:ff9b::7f00:1]/"],
    ["6to4", "https://[2002:7f00:1::]/"],
    ["Teredo", "https://[2001:0:7f00:1::]/"],
    ["a unique local address", "https://[fd00::1]/"],
    ["a link-local IPv6 address", "https://[fe80::1]/"],
    ["a dot at the end", "https://127.0.0.1./"],
    ["percent-encoded digits", "https://%31%32%37.0.0.1/"],
    ["mixed forms", "https://0x7f.0.00000.1/"],
    ["ideographic dots", "https://127。0。0。1/"],
    ["a broadcast address", "https://255.255.255.255/"],
    ["the unspecified IPv6 address", "https://[::]/"],
    ["an IPv4 address in IPv6 without a prefix", "https://[::127.0.0.1]/"],
    ["NAT64 of a local network", "https://[64:ff9b:1::7f00:1]/"],
    ["an IPv6 address with a zone", "https://[fe80::1%25eth0]/"],
    ["an IPv6 multicast address", "https://[ff02::1]/"],
    ["an address for documentation", "https://[3fff::1]/"],
    ["full-width digits", "https://１２７.０.０.１/"],
    ["no encryption", "http://hooks.example.com/"],
    ["a user name", "https://user@hooks.example.com/"],
    ["a password", "https://:secret@hooks.example.com/"],
    ["a fragment", "https://hooks.example.com/#x"],
    ["another scheme", "file:///etc/passwd"],
    ["no URL", "hooks.example.com"],
    ["a very long address", `https://hooks.example.com/${"x".repeat(2_100)}`],
  ])("refuses %s", async (_, url) => {
    const { status, body } = await send(await newKey(), "POST", "", { url });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain("url");
  });

  test("refuses unknown types, descriptions that are not visible, and more than 16 webhooks of an account", async () => {
    const key = await newKey();
    expect(await send(key, "POST", "", { url: URL_OF_OTHERS, types: ["balance.high"] })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining("types[0]") } },
    });
    for (const description of [" ", "\u202e"])
      expect(await send(key, "POST", "", { url: URL_OF_OTHERS, description })).toMatchObject({ status: 400 });
    const created = await Promise.all(Array.from({ length: 18 }, () => send(key, "POST", "", { url: URL_OF_OTHERS })));
    expect(created.filter(({ status }) => status === 200)).toHaveLength(16);
    expect(created.filter(({ status }) => status === 409)).toHaveLength(2);
  });
});

describe("for operators", () => {
  test("creates webhooks of an account and of all accounts, and logs the changes without their addresses", async () => {
    const { accountId } = await newKey();
    const reason = "test";
    const own = await operator.createWebhook({ accountId, url: `${URL_OF_OTHERS}?token=secret`, reason });
    const all = await operator.createWebhook({ url: URL_OF_OTHERS, types: ["price.changed"], reason });
    expect(own.webhook).toMatchObject({ accountId });
    expect(all.webhook).toMatchObject({ accountId: "", id: expect.stringMatching(/^who_/) });
    const webhookId = all.webhook?.id ?? "";
    expect((await operator.listWebhooks({})).webhooks.map(({ id }) => id)).toContain(webhookId);
    expect((await operator.listWebhooks({ accountId })).webhooks.map(({ id }) => id)).toEqual([own.webhook?.id]);
    await operator.updateWebhook({ webhookId, state: "paused", reason, updateMask: { paths: ["state"] } });
    await operator.rotateWebhook({ webhookId, overlapSeconds: 0, reason });
    await operator.redeliver({ webhookId, from: { seconds: 0n }, reason });
    await operator.deleteWebhook({ webhookId, reason });
    const { events } = await operator.listOperatorEvents({ pageSize: 10 });
    expect(events.slice(0, 6).map(({ method }) => method)).toEqual([
      "DeleteWebhook",
      "Redeliver",
      "RotateWebhook",
      "UpdateWebhook",
      "CreateWebhook",
      "CreateWebhook",
    ]);
    expect(JSON.stringify(events, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      "token=secret",
    );
  });
});
