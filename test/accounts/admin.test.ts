import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { sendJson } from "../rest/send-json.ts";
import { callAny, rpcMethods } from "../support/any-method.ts";
import { useTestApp } from "../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";
import { operatorCall } from "../support/operator.ts";

const { createAccount, getAccount, listAccounts, updateAccount } = AdminService.method;

const app = useTestApp();
const operator = useOperator(app);

test("an account has its unspent credits, and its balance is that of the moment at which they are read", async () => {
  const accountId = await createTestAccount(operator);
  const expiresAt = timestampFromDate(new Date("2099-02-01T00:00:00Z"));
  const credit = (idempotencyKey: string) =>
    operator.creditAccount({ accountId, amountMicros: 1_000_000n, reason: "r", idempotencyKey, expiresAt });
  let isDone = false;
  const crediting = async () => {
    for (let i = 0; i < 20; i++) await credit(String(i));
    isDone = true;
  };
  const reading = async () => {
    while (!isDone) {
      const { account } = await operator.getAccount({ accountId });
      expect(account?.balanceMicros).toBe(BigInt(account?.grants.length ?? 0) * 1_000_000n);
    }
  };
  await Promise.all([crediting(), reading()]);
  const adjustment = { accountId, amountMicros: -19_600_000n, reason: "r", idempotencyKey: "used" };
  await operator.adjustAccount(adjustment);
  const { account } = await operator.getAccount({ accountId });
  expect(account?.balanceMicros).toBe(400_000n);
  expect(account?.grants).toMatchObject([
    { id: expect.stringMatching(/^led_/), amountMicros: 1_000_000n, remainingMicros: 400_000n, expiresAt },
  ]);
});

async function generate(secret: string, content = "hi"): Promise<{ id: string }> {
  const request = { model: "vx-sandbox-small", messages: [{ role: "user", content }] };
  const { status, body } = await sendJson(app.url, { verb: "POST", path: "/v1/generate", secret, body: request });
  if (status !== 200) throw new Error(String(status));
  return body as { id: string };
}

const call = operatorCall(app);
const create = async (request: { name: string; plan?: string }) => {
  const outcome = await call(createAccount, request);
  return outcome.ok ? outcome.message.account : undefined;
};

test("a new account has the plan free and a balance of zero, and can be read", async () => {
  const account = await create({ name: "acme" });
  expect(account).toMatchObject({
    ...{ id: expect.stringMatching(/^acct_[0-9a-z]{26}$/), name: "acme", plan: "free" },
    ...{ balanceMicros: 0n, balance: "$0.00", heldMicros: 0n, createdAt: expect.anything() },
  });
  const createdAt = account?.createdAt && timestampDate(account.createdAt);
  const [row] = await app.database.owner`SELECT created_at FROM vx.accounts WHERE id = ${account?.id ?? ""}`;
  expect(createdAt).toEqual(row?.created_at);
  expect(await call(getAccount, { accountId: account?.id ?? "" })).toMatchObject({ message: { account } });
  expect(await create({ name: "x".repeat(100), plan: "pro" })).toMatchObject({ plan: "pro" });
});

test.each([
  ["no name", { name: "" }, "name"],
  ["a name of 101 characters", { name: "x".repeat(101) }, "name"],
  ["NUL in the name", { name: "\u0000" }, "name"],
  ["a name of spaces", { name: "\u00a0\u2003" }, "name"],
  ["an invisible name", { name: "\u200b\u2060" }, "name"],
  ["an unknown plan", { plan: "gold" }, "plan"],
  ["an invalid plan name", { plan: "Pro!" }, "plan"],
  ["an external id that starts as an id does", { externalId: "acct_1" }, "external_id"],
  ["an external id of 101 characters", { externalId: "x".repeat(101) }, "external_id"],
  ["an address without a host", { email: "nobody" }, "email"],
  ["an address with a space", { email: "a b@c" }, "email"],
  ["NUL in the notes", { notes: "\u0000" }, "notes"],
])("%s is a 400 that names the field", async (_, change, field) => {
  expect(await call(createAccount, { name: "x", ...change })).toMatchObject({ reason: "invalid_argument", fields: [field] });
  const isOfPlan = "plan" in change;
  const updated = isOfPlan ? undefined : await call(updateAccount, { accountId: await createTestAccount(operator), ...change });
  if (updated) expect(updated).toMatchObject({ reason: "invalid_argument", fields: [field] });
});

test("an unknown account is not found", async () => {
  for (const accountId of ["acct_none", "key_1", "%"]) {
    expect(await call(getAccount, { accountId })).toMatchObject({ code: "not_found", reason: "not_found" });
  }
  expect(await call(getAccount, { accountId: "" })).toMatchObject({ fields: ["account_id"] });
});

test("accounts are listed newest first, in stable pages while accounts are added", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.unshift((await create({ name: `account ${i}` }))?.id ?? "");
  const page = async (pageToken: string) => {
    const outcome = await call(listAccounts, { pageSize: 2, pageToken });
    return outcome.ok ? outcome.message : undefined;
  };
  const first = await page("");
  await create({ name: "later" });
  const second = await page(first?.nextPageToken ?? "");
  const listed = [...(first?.accounts ?? []), ...(second?.accounts ?? [])].map(({ id }) => id);
  expect(listed.slice(0, 3)).toEqual(ids);
});

test("accounts are listed by name and by state; a token of one order is not valid for another", async () => {
  const names = ["sorted a", "sorted b"];
  for (const name of names.toReversed()) await create({ name });
  const listed = await call(listAccounts, { sort: "name", state: "active", pageSize: 1_000 });
  const found = listed.ok ? listed.message.accounts.map(({ name }) => name) : [];
  expect(found.filter((name) => names.includes(name))).toEqual(names);
  const first = await call(listAccounts, { sort: "name", pageSize: 1 });
  const pageToken = first.ok ? first.message.nextPageToken : "";
  for (const request of [{ sort: "spent_today", pageToken }, { sort: "name", state: "active", pageToken }, { pageToken }])
    expect(await call(listAccounts, request)).toMatchObject({ fields: ["page_token"] });
});

test.each([
  [{ pageSize: -1 }, "page_size"],
  [{ pageToken: "x" }, "page_token"],
  [{ sort: "balance" }, "sort"],
  [{ state: "open" }, "state"],
  [{ search: "a", sort: "name" }, "search"],
  [{ sort: "name", balanceBelowMicros: 1n }, "balance_below_micros"],
  [{ sort: "lowest_balance", balanceBelowMicros: 0n }, "balance_below_micros"],
])("a list of %o is a 400 that names %s", async (request, field) => {
  expect(await call(listAccounts, request)).toMatchObject({ fields: [field] });
});

describe("profiles", () => {
  test("each field is set, kept and removed on its own", async () => {
    const profile = { name: "initech", externalId: "crm-1", notes: "a\n\tb" };
    const { account } = await operator.createAccount(profile);
    expect(account).toMatchObject({ ...profile, email: "", state: "active" });
    const accountId = account?.id ?? "";
    for (const changes of [{ email: "ops@initech.example" }, { externalId: "", notes: "" }, { name: "initrode" }]) {
      Object.assign(profile, changes);
      expect((await operator.updateAccount({ accountId, ...changes })).account).toMatchObject(profile);
    }
    await expect(operator.updateAccount({ accountId: "acct_none", name: "x" })).rejects.toThrow(/not_found/);
  });

  test("an external id belongs to one account, even when several set it at once", async () => {
    const ids = await Promise.all([1, 2, 3].map(() => createTestAccount(operator)));
    const outcomes = await Promise.allSettled(ids.map((accountId) => operator.updateAccount({ accountId, externalId: "crm-2" })));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(`${outcome.reason}`).toMatch(/external_id: is the external id of another/);
    }
    await expect(operator.createAccount({ name: "x", externalId: "crm-2" })).rejects.toThrow(/external_id/);
  });

  test("an account is found by its id, its external id and a name that no other account has", async () => {
    const { account } = await operator.createAccount({ name: "hooli", externalId: "crm-3" });
    for (const accountId of [account?.id ?? "", "crm-3", "hooli"]) {
      expect((await operator.getAccount({ accountId })).account).toEqual(account);
    }
    const accountId = account?.id ?? "";
    const movement = { accountId: "crm-3", amountMicros: 5n, reason: "invoice 7" };
    for (const method of ["creditAccount", "adjustAccount"] as const) {
      const once = { ...movement, idempotencyKey: method };
      const moved = await operator[method](once);
      expect(moved.account?.id).toBe(accountId);
      expect((await operator[method]({ ...once, accountId })).entry).toEqual(moved.entry);
    }
    const named = { accountId: "crm-3", reason: "ticket 7" };
    const { apiKey } = await operator.createKey({ ...named, name: "ci" });
    expect((await operator.listKeys(named)).apiKeys).toEqual([apiKey]);
    expect((await operator.listLedgerEntries(named)).entries).toHaveLength(2);
    expect(await operator.getUsage(named)).toMatchObject({ throughSeq: 2n });
    await operator.createAccount({ name: "hooli" });
    await expect(operator.getAccount({ accountId: "hooli" })).rejects.toThrow(/several accounts/);
  });

  test("a change does not accept a name, and a name is not taken for the external id of another account", async () => {
    const victim = (await operator.createAccount({ name: "pied piper", externalId: "crm-4" })).account?.id ?? "";
    const key = await createTestKey(operator);
    // What a customer can do on the page or with a sign-up.
    const rename = (name: string) => operator.updateAccount({ accountId: key.accountId, name });
    const owner = { case: "accountId", value: "crm-4" } as const;
    const named = { accountId: "crm-4", reason: "ticket 8" };
    const movement = { ...named, amountMicros: 50n };
    const limit = { metric: "cost", window: "day", amount: 1n };
    const changes: [string, () => Promise<unknown>][] = [
      ["UpdateAccount", () => operator.updateAccount({ ...named, notes: "seen" })],
      ["SuspendAccount", () => operator.suspendAccount(named)],
      ["ResumeAccount", () => operator.resumeAccount(named)],
      ["CreditAccount", () => operator.creditAccount({ ...movement, idempotencyKey: "8" })],
      ["AdjustAccount", () => operator.adjustAccount({ ...movement, idempotencyKey: "9" })],
      ["SetAccountPlan", () => operator.setAccountPlan({ ...named, plan: "pro" })],
      ["CreateKey", () => operator.createKey({ ...named, name: "ci" })],
      ["SetLimit", () => operator.setLimit({ owner, limit, reason: "ticket 8" })],
      ["RemoveLimit", () => operator.removeLimit({ owner, limitId: "lim_1", reason: "ticket 8" })],
      ["CreateInvitation", () => operator.createInvitation({ ...named, role: "owner" })],
      ["CreateWebhook", () => operator.createWebhook({ ...named, url: "https://hooks.example.com/vx" })],
      ["CloseAccount", () => operator.closeAccount({ ...named, balance: "written_off" })],
    ];
    await rename("crm-4");
    for (const [, change] of changes.slice(0, 8)) await change();
    const { events } = await operator.listOperatorEvents({ accountId: victim });
    const methods = events.map(({ method }) => method).reverse();
    expect(methods.slice(1)).toEqual(changes.slice(0, 8).map(([method]) => method));
    let found: string | null = "";
    const onHeader = (headers: Headers) => (found = headers.get("x-vx-account"));
    expect((await operator.getAccount(named, { onHeader })).account?.id).toBe(victim);
    expect(found).toBeNull();

    await operator.closeAccount({ ...named, balance: "written_off" });
    // Now only a name.
    expect((await operator.listKeys(named, { onHeader })).apiKeys).toHaveLength(1);
    expect(found).toBe(key.accountId);
    for (const [method, change] of changes) {
      await expect(change(), method).rejects.toThrow(/does not accept the name/);
      const [refused] = (await operator.listOperatorEvents({ target: "crm-4", pageSize: 1 })).events;
      expect(refused).toMatchObject({ method, outcome: "not_found" });
    }
    expect((await operator.listKeys({ accountId: key.accountId }, { onHeader })).apiKeys).toHaveLength(1);
    expect(found).toBeNull();
  });

  test("a search finds starts of the external id, the e-mail address and the name, then parts of names, each account once", async () => {
    const found: string[] = [];
    for (const fields of [
      { externalId: "50%_OFF", email: "50%_off@c.example", name: "50%_off" },
      { externalId: "50%_OFF-2" },
      { email: "50%_off@b.example", name: "50%_off" },
      { name: "50%_OFF" },
      { name: "50%_off ä" },
    ]) {
      found.push((await operator.createAccount({ name: "y", ...fields })).account?.id ?? "");
    }
    for (const name of ["500 off", "50%_of"]) await operator.createAccount({ name });
    for (const name of ["a 50%_off", "B50%_OFF 50%_off"]) found.push((await operator.createAccount({ name })).account?.id ?? "");
    // Found by its e-mail address before.
    await operator.updateAccount({ accountId: found[2] ?? "", name: "c 50%_off" });
    for (const pageSize of [1, 2, 3, 100]) {
      const seen: string[] = [];
      let pageToken = "";
      do {
        const page = await operator.listAccounts({ search: "50%_Off", pageSize, pageToken });
        expect(page.accounts.length).toBeLessThanOrEqual(pageSize);
        seen.push(...page.accounts.map(({ id }) => id));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      expect(seen).toEqual(found);
    }
    expect((await operator.listAccounts({ search: found[0] ?? "" })).accounts).toHaveLength(1);
    const { nextPageToken: pageToken } = await operator.listAccounts({ search: "50%_Off", pageSize: 1 });
    await expect(operator.listAccounts({ search: "50", pageToken })).rejects.toThrow(/page_token/);
  });

  test("a search finds the account of anything that belongs to it by its id", async () => {
    const { accountId, secret, id: keyId } = await createPaidKey(operator);
    await createPaidKey(operator);
    const hook = { accountId, url: "https://hooks.example.com", reason: "test" };
    const { webhook } = await operator.createWebhook(hook);
    const { id } = await generate(secret);
    const [entry] = (await operator.listLedgerEntries({ accountId })).entries;
    const [event] = (await operator.listEvents({ accountId })).events;
    const other = (prefix: string) => keyId.replace("key", prefix);
    await app.database.owner`INSERT INTO vx.topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at)
      VALUES (vx.lane_of(${accountId}), ${other("top")}, ${accountId}, 'pending', 1, 'USD', '', now())`;
    await app.database.owner`INSERT INTO vx.failures (lane, account_id, id, created_at)
      VALUES (vx.lane_of(${accountId}), ${accountId}, ${other("fail")}, now())`;
    const suffix = id.slice(4);
    const ids = [keyId, webhook?.id, id, `resp_${suffix}`, `msg_${suffix}`, entry?.id, event?.id, other("top"), other("fail")];
    for (const search of ids) {
      const { accounts } = await operator.listAccounts({ search: search ?? "none" });
      expect([search, ...accounts.map((account) => account.id)]).toEqual([search, accountId]);
    }
    for (const search of ids) {
      const unknown = `${search?.slice(0, 10)}0000000000${search?.slice(20)}`;
      expect((await operator.listAccounts({ search: unknown })).accounts, unknown).toEqual([]);
    }
  });
});

const OPEN_WHILE_SUSPENDED = [
  ...["GetMe", "GetAccount", "ListEntries", "GetGeneration", "GetUsage", "ListEvents", "WatchEvents", "GetTopUp", "ListTopUps"],
  ...["GetAutoTopUp", "GetStatement", "ListFailures", "CountFailures", "PutAutoTopUp", "RevokeKey"],
];

describe("a suspended account", () => {
  test("every method returns account_suspended until it is resumed, except those that read or revoke", async () => {
    const key = await createTestKey(operator, { scopes: ["generate", "read", "keys", "billing"] });
    const { accountId } = key;
    const { account } = await operator.suspendAccount({ accountId, reason: "overdue" });
    expect(account).toMatchObject({ state: "suspended", suspendedAt: expect.anything() });
    const end = callAny(app);
    for (const method of rpcMethods) {
      const ending = await end(method, key.secret);
      if (OPEN_WHILE_SUSPENDED.includes(method.name)) {
        // The empty request is not valid for some of them.
        expect(ending.reason, method.name).not.toBe("account_suspended");
        expect(ending.code, method.name).not.toBe("permission_denied");
      } else {
        expect(ending, method.name).toMatchObject({ code: "permission_denied", reason: "account_suspended" });
      }
    }
    expect((await operator.suspendAccount({ accountId, reason: "again" })).account).toEqual(account);
    await operator.resumeAccount({ accountId });
    expect(await end(MeService.method.getMe, key.secret)).toMatchObject({ code: "ok" });
  });

  const send = async (secret: string, verb: string, path: string, body?: object) =>
    (await sendJson(app.url, { verb, path, secret, body })) as { status: number; body: { error?: { code: string } } };

  test("uses no slot of its keys for a refused generation, and the REST error has the status 403", async () => {
    const key = await createTestKey(operator, { rateLimitRpm: 1 });
    await operator.suspendAccount({ accountId: key.accountId, reason: "overdue" });
    await expect(operator.suspendAccount({ accountId: key.accountId, reason: " " })).rejects.toThrow(/reason/);
    const refused = await send(key.secret, "POST", "/v1/generate", {});
    expect([refused.status, refused.body.error?.code]).toEqual([403, "account_suspended"]);
    const list = () => send(key.secret, "GET", "/v1/ledger");
    expect([(await list()).status, (await list()).status]).toEqual([200, 429]);
  });

  test("reads its ledger and revokes a leaked key, which is then invalid", async () => {
    const key = await createPaidKey(operator);
    const leaked = await createTestKey(operator, { accountId: key.accountId });
    await operator.suspendAccount({ accountId: key.accountId, reason: "overdue" });
    const account = { state: "suspended", balance_micros: 10_000_000 };
    expect(await send(key.secret, "GET", "/v1/account")).toMatchObject({ body: account });
    expect((await send(leaked.secret, "GET", "/v1/ledger")).status).toBe(200);
    expect((await send(key.secret, "POST", "/v1/keys", { name: "new" })).status).toBe(403);
    expect((await send(key.secret, "GET", "/v1/keys")).status).toBe(403);
    expect((await send(key.secret, "DELETE", `/v1/keys/${leaked.id}`)).status).toBe(200);
    expect((await send(leaked.secret, "GET", "/v1/ledger")).status).toBe(401);
  });

  test("lets a running call finish, and charges it", async () => {
    const { accountId, secret } = await createPaidKey(operator);
    const running = generate(secret, "[[tokens=20 delay_ms=50]] hi");
    await expect.poll(async () => (await operator.getAccount({ accountId })).account?.heldMicros).toBeGreaterThan(0n);
    await operator.suspendAccount({ accountId, reason: "overdue" });
    await expect(generate(secret)).rejects.toThrow("403");
    expect(await running).toMatchObject({ finish_reason: "stop" });
    const { entries } = await operator.listLedgerEntries({ accountId });
    expect(entries.map(({ kind }) => kind)).toEqual(["generation", "credit"]);
  });
});
