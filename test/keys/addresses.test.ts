import { expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { QUICKEST } from "../support/any-method.ts";
import { startTestApp, useOwnApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";

const HOME = "203.0.113.7";
const AWAY = "198.51.100.9";

const app = useOwnApp({ env: { VX_TRUSTED_PROXIES: "127.0.0.1,10.0.0.0/8,::1" } });
/** Trusts no proxy. */
const direct = started(() => startTestApp({ database: app.database }));
const operator = useOperator(app);
const caller = started(() => QUICKEST.open(app.url));

async function keyOf(allowedCidrs: string[], scopes = ["generate", "read", "keys"], plan = "scale") {
  const { accountId } = await createTestKey(operator, { plan });
  const { secret, apiKey } = await operator.createKey({ accountId, name: "office", scopes, allowedCidrs });
  return { accountId, secret, id: apiKey?.id ?? "", allowedCidrs: apiKey?.allowedCidrs };
}

const from = (address: string, secret: string) => ({ ...bearer(secret), "x-forwarded-for": address });

const setCidrs = (keyId: string, allowedCidrs: string[]) =>
  operator.updateKey({ keyId, allowedCidrs, updateMask: { paths: ["allowed_cidrs"] } });

async function listEntries(headers: Record<string, string>, { url } = app as { readonly url: string }) {
  const response = await fetch(`${url}/v1/ledger`, { headers });
  return { status: response.status, text: await response.text() };
}

test("a key works only from its addresses, in unary calls and streams", async () => {
  const { secret } = await keyOf(["203.0.113.0/24", "2001:db8::/32"]);
  const request = { model: "vx-sandbox-small", messages: [{ role: "user", content: "hi" }] };
  for (const address of [HOME, "2001:db8::1", "::ffff:203.0.113.9"]) {
    expect(await caller.call(MeService.method.getMe, {}, from(address, secret))).toMatchObject({ ok: true });
  }
  for (const address of [AWAY, "2001:db9::1", "unknown"]) {
    const refused = { ok: false, reason: "address_not_allowed" };
    const headers = from(address, secret);
    expect(await caller.call(MeService.method.getMe, {}, headers)).toMatchObject(refused);
    expect(await caller.call(LedgerService.method.listEntries, {}, headers)).toMatchObject(refused);
    expect(await caller.call(GenerateService.method.generate, request, headers)).toMatchObject(refused);
  }
});

test("a key gives only addresses within its own, which are also the default, and changes them", async () => {
  const { secret } = await keyOf(["203.0.113.0/24", "2001:db8::/32"]);
  const { createKey, updateKey } = KeyService.method;
  const create = (allowedCidrs: string[]) => caller.call(createKey, { name: "child", allowedCidrs }, from(HOME, secret));
  for (const wider of ["203.0.112.0/23", "198.51.100.1", "::/0", "2001:db8::/31"]) {
    expect(await create(["203.0.113.1", wider])).toMatchObject({ fields: ["allowed_cidrs"] });
  }
  const child = await create([]);
  expect(child).toMatchObject({ message: { apiKey: { allowedCidrs: ["203.0.113.0/24", "2001:db8::/32"] } } });
  const keyId = child.ok ? (child.message.apiKey?.id ?? "") : "";
  const update = (allowedCidrs: string[], id = keyId) =>
    caller.call(updateKey, { keyId: id, allowedCidrs, updateMask: { paths: ["allowed_cidrs"] } }, from(HOME, secret));
  expect(await update(["203.0.113.0/25"])).toMatchObject({ message: { apiKey: { allowedCidrs: ["203.0.113.0/25"] } } });
  expect(await update(["0.0.0.0/0"])).toMatchObject({ fields: ["allowed_cidrs"] });
  expect(await update([])).toMatchObject({ message: { apiKey: { allowedCidrs: ["203.0.113.0/24", "2001:db8::/32"] } } });
});

test.each([
  ["203.0.113.1/24", "203.0.113.0/24"],
  ["203.0.113.0/33", "at most 32"],
  ["2001:db8::/129", "at most 128"],
  ["example.com", "IPv4 or IPv6"],
  ["203.0.113.0/", "IPv4 or IPv6"],
  ["fe80::1%eth0", "IPv4 or IPv6"],
])("%s is a 400 that names the item and says %s", async (range, text) => {
  const { secret } = await keyOf([]);
  const request = { name: "child", allowedCidrs: ["203.0.113.1", range] };
  const outcome = await caller.call(KeyService.method.createKey, request, bearer(secret));
  expect(outcome).toMatchObject({ reason: "invalid_argument", fields: ["allowed_cidrs[1]"] });
  expect(outcome.ok || outcome.text).toContain(text);
});

test("ranges are stored in canonical form, once each", async () => {
  const { allowedCidrs } = await keyOf(["203.0.113.7", "203.0.113.7/32", "2001:0DB8:0:0::/32", "::ffff:10.0.0.0/104", "::"]);
  expect(allowedCidrs).toEqual(["203.0.113.7/32", "2001:db8::/32", "10.0.0.0/8", "::/128"]);
});

test("without trusted proxies, only the address of the connection counts", async () => {
  const { secret, id } = await keyOf([`${HOME}/32`]);
  const headers = { ...from(HOME, secret), forwarded: `for=${HOME}` };
  expect(await listEntries(headers, direct)).toMatchObject({ status: 403 });
  await setCidrs(id, ["127.0.0.0/8"]);
  expect(await listEntries(from(AWAY, secret), direct)).toMatchObject({ status: 200 });
});

test("each change applies to the next call, in both directions", async () => {
  const { secret, id } = await keyOf([]);
  for (const [ranges, status] of [
    [[HOME], 200],
    [[AWAY], 403],
    [[], 200],
    [[AWAY], 403],
    [[HOME], 200],
  ] as const) {
    await setCidrs(id, [...ranges]);
    expect(await listEntries(from(HOME, secret))).toMatchObject({ status });
  }
});

test("both secrets of a rotated key are bound to its addresses", async () => {
  const { secret, id } = await keyOf([HOME]);
  const rotated = await operator.rotateKey({ keyId: id, overlapSeconds: 600 });
  for (const each of [secret, rotated.secret]) {
    expect(await listEntries(from(HOME, each))).toMatchObject({ status: 200 });
    expect(await listEntries(from(AWAY, each))).toMatchObject({ status: 403 });
  }
});

test("refused calls take no slot, also beside calls from the right address", async () => {
  const { accountId } = await createTestKey(operator);
  const { secret } = await operator.createKey({ accountId, name: "few", rateLimitRpm: 30, allowedCidrs: [HOME] });
  const sent = Array.from({ length: 60 }, (_, i) => listEntries(from(i % 2 === 0 ? HOME : AWAY, secret)));
  const statuses = (await Promise.all(sent)).map(({ status }) => status);
  expect(statuses.filter((_, i) => i % 2 === 1)).toEqual(Array(30).fill(403));
  // The minute may end in between, but no call from the right address is refused.
  expect(statuses.filter((_, i) => i % 2 === 0)).toEqual(Array(30).fill(200));
});

test("the key and the suspension are checked before the address, scope, rate and body after it", async () => {
  const { secret, id, accountId } = await keyOf([HOME], ["read"]);
  const generate = async (address: string) => {
    const headers = { ...from(address, secret), "content-type": "application/json" };
    const response = await fetch(`${app.url}/v1/generate`, { method: "POST", headers, body: "{" });
    return `${response.status} ${((await response.json()) as { error: { code: string } }).error.code}`;
  };
  expect(await generate(AWAY)).toBe("403 address_not_allowed");
  expect(await generate(HOME)).toBe("403 insufficient_scope");
  await operator.suspendAccount({ accountId, reason: "test" });
  expect(await generate(AWAY)).toBe("403 account_suspended");
  expect(await listEntries(from(AWAY, secret))).toMatchObject({ status: 403 });
  expect(await listEntries(from(HOME, secret))).toMatchObject({ status: 200 });
  await operator.resumeAccount({ accountId, reason: "test" });
  await operator.revokeKey({ keyId: id });
  expect(await generate(AWAY)).toBe("401 revoked_api_key");
});

test("a refusal names the address that was judged, and the key was not used", async () => {
  const { secret, id, accountId } = await keyOf([HOME]);
  const { status, text } = await listEntries(from(AWAY, secret));
  expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining(AWAY) });
  const { apiKeys } = await operator.listKeys({ accountId });
  expect(apiKeys.find((key) => key.id === id)?.lastUsedAt).toBeUndefined();
});
