import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { sendAnyJson } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

type Fields = { name?: string; scopes?: string[]; rateLimitRpm?: number; expiresAt?: Timestamp };

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

function inHours(hours: number): Timestamp {
  return timestampFromDate(new Date(Date.now() + hours * 3_600_000));
}

async function create(by: string, fields: Fields = {}) {
  const request = { name: "child", scopes: ["generate", "read", "keys"], ...fields };
  const { apiKey, secret } = messageOf(await call(KeyService.method.createKey, request, by));
  return { id: apiKey?.id ?? "", secret };
}

const update = (secret: string, keyId: string, fields: Fields, paths?: string[]) =>
  call(KeyService.method.updateKey, { keyId, ...fields, ...(paths && { updateMask: { paths } }) }, secret);

type Updating = ReturnType<typeof update>;
const expectKey = async (outcome: Updating, apiKey: object) => expect(await outcome).toMatchObject({ message: { apiKey } });
const expectRefused = async (outcome: Updating, field: string) =>
  expect(await outcome).toMatchObject({ reason: "invalid_argument", fields: [field] });

test.each([{ rate_limit_rpm: 20 }, { rateLimitRpm: 20 }])(
  "over REST, the names of the body %j select the fields",
  async (body) => {
    const parent = await createTestKey(operator, { plan: "pro" });
    const child = await create(parent.secret, { rateLimitRpm: 10 });
    const path = `/v1/keys/${child.id}`;
    expect(await sendAnyJson(app.url, { verb: "PATCH", path, body, secret: parent.secret })).toMatchObject({
      status: 200,
      body: { api_key: { name: "child", rate_limit_rpm: 20 } },
    });
  },
);

test("the mask selects the fields, and one that is not set is cleared", async () => {
  const parent = await createTestKey(operator, { plan: "pro" });
  const child = await create(parent.secret, { rateLimitRpm: 10, expiresAt: inHours(1) });
  const paths = ["rate_limit_rpm", "expires_at"];
  await expectKey(update(parent.secret, child.id, { name: "ignored" }, paths), { name: "child", rateLimitRpm: 600 });
  const { apiKeys } = await operator.listKeys({ accountId: parent.accountId });
  expect(apiKeys.find(({ id }) => id === child.id)?.expiresAt).toBeUndefined();
  for (const path of ["name", "scopes"]) await expectRefused(update(parent.secret, child.id, {}, [path]), path);
  await expectRefused(update(parent.secret, child.id, {}, ["plan"]), "update_mask");
});

test("a key can only tighten itself", async () => {
  const key = await createTestKey(operator, { plan: "pro", rateLimitRpm: 100 });
  await expectRefused(update(key.secret, key.id, { rateLimitRpm: 101 }), "rate_limit_rpm");
  const expiresAt = inHours(1);
  const tighter = { rateLimitRpm: 50, expiresAt, scopes: ["read", "keys"] };
  await expectKey(update(key.secret, key.id, tighter), { rateLimitRpm: 50, expiresAt, scopes: ["read", "keys"] });
  await expectRefused(update(key.secret, key.id, { rateLimitRpm: 51 }), "rate_limit_rpm");
  await expectRefused(update(key.secret, key.id, { expiresAt: inHours(2) }), "expires_at");
  await expectRefused(update(key.secret, key.id, { scopes: ["generate"] }), "scopes");
  // Cleared fields get the values of the calling key.
  await expectKey(update(key.secret, key.id, {}, ["rate_limit_rpm", "expires_at"]), { rateLimitRpm: 50, expiresAt });
});

test("a key changes what it created, directly or not, up to its own values, and no other key", async () => {
  const parent = await createTestKey(operator, { plan: "pro", rateLimitRpm: 100 });
  const child = await create(parent.secret, { rateLimitRpm: 10 });
  const grandchild = await create(child.secret, { rateLimitRpm: 5 });
  const other = await createTestKey(operator, { accountId: parent.accountId });
  await expectKey(update(parent.secret, grandchild.id, { rateLimitRpm: 100 }), { rateLimitRpm: 100 });
  await expectRefused(update(child.secret, grandchild.id, { rateLimitRpm: 11 }), "rate_limit_rpm");
  for (const [by, key] of [
    [child, parent],
    [parent, other],
    [grandchild, child],
  ] as const)
    expect(await update(by.secret, key.id, { name: "taken" })).toMatchObject({ reason: "not_found" });
  await update(parent.secret, parent.id, { scopes: ["read", "keys"] });
  await expectRefused(update(parent.secret, child.id, { scopes: ["generate"] }), "scopes");
});

test("a scope that a key lacks cannot be given, and a revoked key cannot be changed", async () => {
  const parent = await createTestKey(operator, { plan: "pro" });
  const child = await create(parent.secret, { scopes: ["read"] });
  expect(await update(child.secret, child.id, {})).toMatchObject({ reason: "insufficient_scope" });
  await expectRefused(update(parent.secret, child.id, { scopes: ["read", "keys"] }), "scopes");
  await expectRefused(update(parent.secret, child.id, { expiresAt: inHours(-1) }), "expires_at");
  await operator.revokeKey({ keyId: child.id });
  await expectRefused(update(parent.secret, child.id, { name: "late" }), "key_id");
  await expect(operator.updateKey({ keyId: child.id, name: "late" })).rejects.toThrow("revoked");
});

test("an expired key cannot be changed, and so cannot be used again", async () => {
  const parent = await createTestKey(operator, { plan: "pro" });
  const child = await create(parent.secret);
  await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${child.id}`;
  await expectRefused(update(parent.secret, child.id, { expiresAt: inHours(1) }), "key_id");
  await expect(operator.updateKey({ keyId: child.id, expiresAt: inHours(1) })).rejects.toThrow("expired");
  await expect(operator.rotateKey({ keyId: child.id })).rejects.toThrow("expired");
});

test("over REST, a change of nothing succeeds, and of the plan or to a blank name does not", async () => {
  const { secret } = await createTestKey(operator, { plan: "pro" });
  const send = (verb: string, path: string, body: unknown) =>
    sendAnyJson(app.url, { verb, path: `/v1/keys${path}`, body, secret });
  const { id } = (await send("POST", "", { name: "child" })).body.api_key;
  const patch = (body: object) => send("PATCH", `/${id}`, body);
  expect(await patch({})).toMatchObject({ body: { api_key: { name: "child" } } });
  for (const wrong of [{ name: null }, { name: " " }, { name: "\u202e" }, { plan: "scale" }])
    expect(await patch(wrong)).toMatchObject({ status: 400 });
});

test("a chain of keys has at most eight levels", async () => {
  let { secret } = await createTestKey(operator, { plan: "scale" });
  for (let level = 2; level <= 8; level++) ({ secret } = await create(secret, { scopes: ["keys"] }));
  expect(await call(KeyService.method.createKey, { name: "ninth" }, secret)).toMatchObject({ reason: "invalid_argument" });
});
