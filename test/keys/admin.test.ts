import { expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { useOwnApp } from "../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../support/fixtures.ts";
import { operatorCall } from "../support/operator.ts";
import { callOf, messageOf } from "../support/protocols.ts";

const { createKey, listKeys, revokeKey, searchKeys, setKeyLimit } = AdminService.method;

const app = useOwnApp();
const operator = useOperator(app);

const call = operatorCall(app);
const callWithKey = callOf(app);
const getMe = (secret: string) => callWithKey(MeService.method.getMe, {}, secret);

test("a key has the account's plan and the scopes generate and read, or other ones, and works at once", async () => {
  const accountId = await createTestAccount(operator, "pro");
  const { apiKey, secret } = messageOf(await call(createKey, { accountId, name: "ci" }));
  expect(apiKey).toMatchObject({ plan: "pro", scopes: ["generate", "read"], rateLimitRpm: 600, state: "active" });
  expect(secret).toMatch(/^vx_live_[0-9A-Za-z]{32}$/);
  expect(await getMe(secret)).toMatchObject({ message: { keyName: "ci" } });
  const request = { accountId, name: "ci", plan: "free", scopes: ["keys"], rateLimitRpm: 21 };
  const { accountId: _, ...expected } = request;
  expect(await call(createKey, request)).toMatchObject({ message: { apiKey: expected } });
});

const REFUSED: [change: object, field: string][] = [
  [{ plan: "gold" }, "plan"],
  [{ rateLimitRpm: 0 }, "rate_limit_rpm"],
  [{ scopes: ["keys", "keys"] }, "scopes"],
  [{ name: "" }, "name"],
  [{ expiresAt: { seconds: 1n, nanos: 0 } }, "expires_at"],
];
test.each(REFUSED)("%o is a 400 that names %s", async (change, field) => {
  const request = { accountId: await createTestAccount(operator), name: "ci", ...change };
  expect(await call(createKey, request)).toMatchObject({ reason: "invalid_argument", fields: [field] });
});

test("the maximum number of keys applies to operators too", async () => {
  const accountId = await createTestAccount(operator, "free");
  const create = () => call(createKey, { accountId, name: "ci" });
  expect([(await create()).ok, (await create()).ok]).toEqual([true, true]);
  expect(await create()).toMatchObject({ reason: "key_limit_reached" });
});

test("SetKeyLimit sets the limit of a key and restores the limit of the plan", async () => {
  const { id: keyId, secret } = await createTestKey(operator, { plan: "pro" });
  for (const rateLimitRpm of [1, 1_000_000, undefined]) {
    const apiKey = { rateLimitRpm: rateLimitRpm ?? 600 };
    const change = rateLimitRpm === undefined ? {} : { rateLimitRpm };
    expect(await call(setKeyLimit, { keyId, ...change })).toMatchObject({ message: { apiKey } });
    expect(await getMe(secret)).toMatchObject({ message: apiKey });
  }
  for (const rateLimitRpm of [0, -1, 1_000_001])
    expect(await call(setKeyLimit, { keyId, rateLimitRpm })).toMatchObject({ fields: ["rate_limit_rpm"] });
});

test("RevokeKey revokes keys of every account and can be repeated", async () => {
  const { id: keyId, secret } = await createTestKey(operator);
  const first = await call(revokeKey, { keyId });
  const second = await call(revokeKey, { keyId });
  expect(first).toMatchObject({ message: { apiKey: { id: keyId, state: "revoked" } } });
  expect(second.ok && second.message).toEqual(first.ok && first.message);
  expect(await getMe(secret)).toMatchObject({ reason: "revoked_api_key" });
});

test("ListKeys lists the keys of one account, newest first", async () => {
  const first = await createTestKey(operator);
  const second = await createTestKey(operator, { accountId: first.accountId });
  const { apiKeys } = messageOf(await call(listKeys, { accountId: first.accountId }));
  expect(apiKeys.map(({ id }) => id)).toEqual([second.id, first.id]);
});

test("SearchKeys finds keys of all accounts by id, visible characters and parts of the name", async () => {
  const name = "Found by SearchKeys.";
  const first = await createTestKey(operator, { name });
  const second = await createTestKey(operator, { name: `${name} too` });
  const found = async (query: string) => {
    const outcome = await call(searchKeys, { query });
    return outcome.ok ? outcome.message.keys.map((key) => key.apiKey?.id) : outcome.fields;
  };
  const start = first.secret.slice(0, "vx_live_abcd".length);
  const end = first.secret.slice(-4);
  for (const query of [first.id, `${start}…${end}`, `${start.slice(8)}...${end}`, start, start.slice(8)]) {
    expect(await found(query)).toEqual([first.id]);
  }
  expect(await found(` ${name.toLowerCase()} `)).toEqual([first.id, second.id]);
  expect(await found(`${name} t`)).toEqual([second.id]);
  expect(await found(" SearchKeys. TOO")).toEqual([second.id]);
  expect(await found("ound by SearchKeys.")).toEqual([first.id, second.id]);
  expect((await found(""))?.slice(0, 2)).toEqual([second.id, first.id]);
  expect(await found("key_00000000000000000000000000")).toEqual([]);
  expect(await found("vx_live_abc")).toEqual(["query"]);
  expect(await found(first.secret)).toEqual(["query"]);
  expect(await call(searchKeys, { query: first.id })).toMatchObject({
    message: { keys: [{ accountId: first.accountId, accountName: "test" }] },
  });
});

test("SearchKeys finds keys that were not used for some days", async () => {
  const key = await createTestKey(operator, { name: "unused" });
  const isFound = async () => {
    const outcome = await call(searchKeys, { unusedDays: 30, pageSize: 1_000 });
    return outcome.ok && outcome.message.keys.some(({ apiKey }) => apiKey?.id === key.id);
  };
  expect(await isFound()).toBe(false);
  await app.database.owner`UPDATE vx.keys SET created_at = created_at - interval '31 days' WHERE id = ${key.id}`;
  expect(await isFound()).toBe(true);
  await fetch(`${app.url}/v1/me`, { headers: { authorization: `Bearer ${key.secret}` } });
  expect(await isFound()).toBe(false);
  expect(await call(searchKeys, { unusedDays: 30, query: "x" })).toMatchObject({ fields: ["query"] });
  expect(await call(searchKeys, { unusedDays: -1 })).toMatchObject({ fields: ["unused_days"] });
});

test("pages of SearchKeys have every key once, and a token of another query is refused", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push((await createTestKey(operator, { name: "Page of SearchKeys." })).id);
  for (const query of ["page of SearchKeys.", ""]) {
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = messageOf(await call(searchKeys, { query, pageToken, pageSize: 2 }));
      seen.push(...page.keys.map((key) => key.apiKey?.id ?? ""));
      pageToken = page.nextPageToken;
      if (pageToken !== "")
        expect(await call(searchKeys, { query: "other", pageToken })).toMatchObject({ fields: ["page_token"] });
    } while (pageToken !== "");
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((id) => ids.includes(id)).sort()).toEqual(ids.sort());
  }
});

test("an unknown account or key is not found", async () => {
  const accountId = "acct_none";
  const outcomes = [
    ...[await call(listKeys, { accountId }), await call(createKey, { accountId, name: "ci" })],
    await call(AdminService.method.listLedgerEntries, { accountId }),
    ...[await call(setKeyLimit, { keyId: "key_none", rateLimitRpm: 1 }), await call(revokeKey, { keyId: "key_none" })],
  ];
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: "not_found" });
});
