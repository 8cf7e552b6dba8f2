import type { JsonObject } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ACTIVITY_METHODS } from "../../console/account/activity-methods.ts";
import { changesOf } from "../../console/shared/method-text.ts";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { coversRole, type MemberRole } from "../../src/domain/member.ts";
import { policyOf } from "../../src/rules/policy.ts";
import { sendJson } from "../rest/send-json.ts";
import { Customer, memberPolicies, tokenOf, untilWaiting, useCustomerApp } from "../support/customer.ts";
import { operatorOf, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";

const app = useCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_CREDIT: "1" });
const ROLES: readonly MemberRole[] = ["viewer", "developer", "billing", "owner"];
const operator = useOperator(app);

const newOwner = () => Customer.signUp(app);
const newPerson = () => Customer.signIn(app);
const accept = (person: Customer, token: string) => person.fail("AcceptInvitation", { token });
const VOID = "403 invalid_invitation";

async function statusOf(secret: unknown): Promise<number> {
  return (await fetch(`${app.url}/v1/me`, { headers: bearer(String(secret)) })).status;
}

describe("roles", () => {
  test("each method is allowed to exactly the roles that the .proto declares", async () => {
    const { customer: owner, accountId } = await newOwner();
    const members = new Map<MemberRole, Customer>();
    for (const role of ROLES) members.set(role, await owner.admit(role, accountId));
    const stranger = await newPerson();
    const seen = new Set<MemberRole>();
    for (const [method, { memberRole }] of memberPolicies) {
      const isPersonal = memberRole === "person" || memberRole === undefined;
      if (isPersonal || method.methodKind !== "unary" || method.name === "LeaveAccount") continue;
      // The first method with this role is called with all roles, the others with this role and one that it does not cover.
      const refused = ROLES.filter((role) => !coversRole(role, memberRole));
      for (const role of seen.has(memberRole) ? [...refused.slice(-1), memberRole] : ROLES) {
        const answer = await members.get(role)?.fail(method.name, {}, accountId);
        const isRefused = answer === "403 insufficient_role";
        expect([method.name, role, isRefused, answer]).toEqual([method.name, role, refused.includes(role), answer]);
      }
      if (!seen.has(memberRole)) expect(await stranger.fail(method.name, {}, accountId)).toBe("404 not_found");
      seen.add(memberRole);
    }
    expect(seen).toEqual(new Set(ROLES));
  });

  test("what a suspended account may change is the same for keys and members", () => {
    const changes = [...memberPolicies].filter(
      ([{ parent }, { memberRole }]) => /^vx\.v1\./.test(parent.typeName) && memberRole !== "viewer",
    );
    expect(changes.length).toBeGreaterThan(10);
    const ofKeys = changes.map(([method]) => [method.name, policyOf(method).whileSuspended]);
    expect(changes.map(([method, { whileSuspended }]) => [method.name, whileSuspended])).toEqual(ofKeys);
  });

  test("a developer gives keys only the scopes of the role, and gets no key with others", async () => {
    const { customer: owner, accountId } = await newOwner();
    const developer = await owner.admit("developer", accountId);
    expect(await developer.fail("CreateKey", { name: "x", scopes: ["billing"] }, accountId)).toBe("400 invalid_argument");
    const { apiKey } = await owner.do("CreateKey", { name: "paying", scopes: ["billing"] }, accountId);
    const { id: keyId } = apiKey as { id: string };
    for (const method of ["RotateKey", "UpdateKey", "RevokeKey"])
      expect(await developer.fail(method, { keyId, name: "y" }, accountId)).toBe("403 insufficient_role");
    const { activity } = await owner.do("ListActivity", { pageSize: 3 }, accountId);
    expect(activity).toMatchObject(
      ["RevokeKey", "UpdateKey", "RotateKey"].map((method) => ({ method, outcome: "insufficient_role" })),
    );
    const own = await developer.do("CreateKey", { name: "own", scopes: ["generate", "keys"] }, accountId);
    const { id } = own.apiKey as { id: string };
    await developer.do("UpdateKey", { keyId: id, name: "renamed" }, accountId);
    const rotated = await developer.do("RotateKey", { keyId: id, overlapSeconds: 0 }, accountId);
    expect(rotated.secret).toMatch(/^vx_live_/);
  });

  test("the playground has one key per member, for an hour", async () => {
    const { customer, accountId } = await newOwner();
    const first = await customer.do("CreatePlaygroundKey", {}, accountId);
    const second = await customer.do("CreatePlaygroundKey", {}, accountId);
    const [one, other] = [first.apiKey, second.apiKey] as { id: string; scopes: string[]; expiresAt: string }[];
    expect([one?.id, one?.scopes]).toEqual([other?.id, ["generate"]]);
    expect(Math.abs(Date.parse(one?.expiresAt ?? "") - Date.now() - 3_600_000)).toBeLessThan(60_000);
    expect([await statusOf(first.secret), await statusOf(second.secret)]).toEqual([401, 200]);
  });

  test.each([
    ["viewer", 401],
    ["billing", 401],
    ["developer", 200],
    ["owner", 200],
  ])("the key of the playground of a member who becomes %s gets %i", async (role, status) => {
    const { customer: owner, accountId } = await newOwner();
    const member = await owner.admit("developer", accountId);
    const { secret } = await member.do("CreatePlaygroundKey", {}, accountId);
    await owner.do("SetMemberRole", { personId: await member.personId(), role }, accountId);
    expect(await statusOf(secret)).toBe(status);
  });

  test("the key of a playground names no person, and is in no list, event and change of others", async () => {
    const { customer: owner, accountId } = await newOwner();
    const member = await owner.admit("developer", accountId);
    const { secret: own } = await owner.do("CreateKey", { name: "own", scopes: ["keys", "read"] }, accountId);
    const { apiKey, secret } = await member.do("CreatePlaygroundKey", {}, accountId);
    const { id: keyId, name } = apiKey as { id: string; name: string };
    expect(name).toBe("Playground");
    const namesOf = (keys: unknown) => (keys as { name: string }[]).map((key) => key.name);
    expect(namesOf((await owner.do("ListKeys", {}, accountId)).apiKeys)).toEqual(["own"]);
    const all = await owner.do("ListKeys", { includePlayground: true }, accountId);
    expect(namesOf(all.apiKeys)).toEqual(["Playground", "own"]);
    const listed = await sendJson(app.url, { verb: "GET", path: "/v1/keys", secret: String(own) });
    expect(namesOf((listed.body as JsonObject).api_keys)).toEqual(["own"]);
    for (const method of ["RotateKey", "UpdateKey"])
      expect(await owner.fail(method, { keyId, name: "x" }, accountId)).toBe("400 invalid_argument");
    // The plan "free" allows two active keys.
    const refusal = await owner.call("CreateKey", { name: "third" }, accountId);
    expect(refusal.body.message).toContain("Keys of the playground count too");
    await app.database.owner`UPDATE vx.keys SET expires_at = now() - interval '1 s' WHERE id = ${keyId}`;
    const renewed = await member.do("CreatePlaygroundKey", {}, accountId);
    expect(renewed.apiKey).toMatchObject({ id: keyId, state: "active" });

    const personId = await member.personId();
    await owner.do("SetMemberRole", { personId, role: "viewer" }, accountId);
    expect([await statusOf(secret), await statusOf(renewed.secret)]).toEqual([401, 401]);
    await owner.do("SetMemberRole", { personId, role: "developer" }, accountId);
    const { secret: last } = await member.do("CreatePlaygroundKey", {}, accountId);
    expect(await statusOf(last)).toBe(200);
    await owner.do("RemoveMember", { personId }, accountId);
    expect(await statusOf(last)).toBe(401);
    const { events } = await owner.do("ListEvents", { types: ["key.created,key.rotated,key.revoked"] }, accountId);
    expect(events).toMatchObject([{ data: { name: "own" } }]);
  });
});

describe("members", () => {
  test("an owner invites, changes and removes members; the events and the activity tell", async () => {
    const { customer: owner, accountId } = await newOwner();
    const member = await owner.admit("viewer", accountId);
    const personId = await member.personId();
    expect((await owner.do("ListMembers", {}, accountId)).members).toMatchObject([
      { email: owner.email, role: "owner" },
      { email: member.email, role: "viewer", personId },
    ]);
    await owner.do("SetMemberRole", { personId, role: "billing" }, accountId);
    await member.do("SetLimit", { limit: { metric: "cost", window: "day", amount: "5" } }, accountId);
    await owner.do("RemoveMember", { personId }, accountId);
    expect(await member.fail("GetAccount", {}, accountId)).toBe("404 not_found");
    expect(await member.do("GetSession")).not.toHaveProperty("accounts");
    const { events } = await owner.do("ListEvents", { types: ["member.invited,member.joined,member.removed"] }, accountId);
    expect((events as { type: string }[]).map(({ type }) => type)).toEqual([
      "member.joined",
      "member.invited",
      "member.joined",
      "member.removed",
    ]);
    const { activity } = await owner.do("ListActivity", {}, accountId);
    expect(activity).toMatchObject([
      { method: "RemoveMember", email: owner.email, target: personId },
      { method: "SetLimit", personId, details: { metric: "cost", amount: "5" } },
      { method: "SetMemberRole", details: { role: "billing" } },
      { method: "AcceptInvitation", personId },
      { method: "CreateInvitation", email: owner.email },
      { method: "CreditAccount", details: { amount_micros: "1000000" } },
      { method: "SignUp" },
    ]);
    const { events: log } = await operator.listOperatorEvents({ accountId });
    expect(JSON.stringify(log, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain("@example.com");
  });

  test("of one method, the activity has the changes and the refused attempts of members, and none of keys", async () => {
    const { customer: owner, accountId } = await newOwner();
    const { secret, apiKey } = await owner.do("CreateKey", { name: "own", scopes: ["keys", "billing", "webhooks"] }, accountId);
    const { id: keyId } = apiKey as { id: string };
    const byKey = async (verb: string, path: string, body: JsonObject) =>
      (await sendJson(app.url, { verb, path, secret: String(secret), body })).status;
    const { activity: before } = await owner.do("ListActivity", {}, accountId);
    expect(before).toMatchObject([{ method: "CreateKey", details: { name: "own", scopes: "keys,webhooks,billing" } }, {}, {}]);
    expect(await byKey("PATCH", `/v1/keys/${keyId}`, { name: "renamed" })).toBe(200);
    expect(await byKey("PATCH", "/v1/keys/key_x", { name: "x" })).toBe(404);
    expect(await byKey("PATCH", "/v1/account", { low_balance_micros: 1 })).toBe(200);
    expect(await byKey("POST", "/v1/webhooks", { url: "https://example.com", types: ["x"] })).toBe(400);
    expect(await owner.do("ListActivity", {}, accountId)).toEqual({ activity: before });
    expect(await owner.fail("UpdateKey", { keyId: "key_x", name: "x" }, accountId)).toBe("404 not_found");
    await owner.do("UpdateAccount", { lowBalanceMicros: "1" }, accountId);
    const webhook = { url: "https://example.com", types: ["x"], description: "d" };
    expect(await owner.fail("CreateWebhook", webhook, accountId)).toBe("400 invalid_argument");
    expect((await owner.do("ListActivity", { pageSize: 3 }, accountId)).activity).toMatchObject([
      { method: "CreateWebhook", target: accountId, outcome: "invalid_argument", details: { types: "x", description: "d" } },
      { method: "UpdateAccount", target: accountId, outcome: "ok", details: { low_balance_micros: "1" } },
      { method: "UpdateKey", target: "key_x", outcome: "not_found", details: { name: "x" } },
    ]);
  });

  test("the activity has the changes that a role refused, whoever tried them", async () => {
    const { customer: owner, accountId } = await newOwner();
    const member = await owner.admit("viewer", accountId);
    expect(await member.fail("RenameAccount", { name: "x" }, accountId)).toBe("403 insufficient_role");
    const [refused] = (await owner.do("ListActivity", { pageSize: 1 }, accountId)).activity as JsonObject[];
    const by = { personId: await member.personId(), email: member.email };
    expect(refused).toMatchObject({ method: "RenameAccount", outcome: "insufficient_role", ...by });
  });

  test("members of a closed account learn of it for 30 days, and get its last statement", async () => {
    const { customer: owner, accountId } = await newOwner();
    const stranger = await newOwner();
    while (!(await operator.closeAccount({ accountId, reason: "left", balance: "written_off" })).closed);
    expect(await owner.fail("GetAccount", {}, accountId)).toBe("404 not_found");
    const session = await owner.do("GetSession");
    expect(session).toMatchObject({ closedAccounts: [{ id: accountId }], canSignUp: true });
    expect(session).not.toHaveProperty("accounts");
    const [closed] = session.closedAccounts as { closedAt: string }[];
    const { statement } = await owner.do("GetClosedStatement", { accountId });
    expect(statement).toMatchObject({ accountId, month: closed?.closedAt.slice(0, 7), creditsMicros: "1000000" });
    expect(statement).not.toHaveProperty("closingBalanceMicros");
    for (const other of [accountId, stranger.accountId, "acct_x"])
      expect(await stranger.customer.fail("GetClosedStatement", { accountId: other })).toBe("404 not_found");
    // A person who leaves an account does not get what happens in it later.
    const member = await stranger.customer.admit("viewer", stranger.accountId);
    await member.do("LeaveAccount", {}, stranger.accountId);
    expect(await member.do("GetSession")).not.toHaveProperty("closedAccounts");

    await app.database.owner`
      UPDATE vx.closed_accounts SET closed_at = closed_at - interval '30 days' WHERE account_id = ${accountId}`;
    expect(await owner.do("GetSession")).not.toHaveProperty("closedAccounts");
    expect(await owner.fail("GetClosedStatement", { accountId })).toBe("404 not_found");
    await Customer.signIn(app, owner.email);
    const kept = await app.database.owner`SELECT FROM vx.closed_accounts WHERE account_id = ${accountId}`;
    expect(kept).toHaveLength(0);
  });

  test("the activity is filtered by person, method and time, within the account", async () => {
    const { customer: owner, accountId } = await newOwner();
    const other = await newOwner();
    const member = await owner.admit("developer", accountId);
    await owner.do("RenameAccount", { name: "one" }, accountId);
    const [renamed] = (await owner.do("ListActivity", { pageSize: 1 }, accountId)).activity as JsonObject[];
    const at = String(renamed?.createdAt);
    await owner.do("RenameAccount", { name: "two" }, accountId);
    await member.do("CreatePlaygroundKey", {}, accountId);
    const methodsOf = async (filter: JsonObject) => {
      const { activity = [] } = await owner.do("ListActivity", filter, accountId);
      return (activity as JsonObject[]).map(({ method }) => method);
    };
    const both = ["RenameAccount", "RenameAccount"];
    expect(await methodsOf({ personId: await member.personId() })).toEqual(["CreatePlaygroundKey", "AcceptInvitation"]);
    expect(await methodsOf({ method: "RenameAccount" })).toEqual(both);
    expect(await methodsOf({ method: "RenameAccount", personId: await member.personId() })).toEqual([]);
    expect(await methodsOf({ from: at })).toEqual(["CreatePlaygroundKey", ...both]);
    expect((await methodsOf({ to: at })).slice(0, 2)).toEqual(["AcceptInvitation", "CreateInvitation"]);
    expect(await methodsOf({ personId: await other.customer.personId() })).toEqual([]);
    // The next page has the same filter.
    const first = await owner.do("ListActivity", { method: "RenameAccount", pageSize: 1 }, accountId);
    const next = { method: "RenameAccount", pageSize: 1, pageToken: first.nextPageToken ?? "" };
    expect(await methodsOf(next)).toEqual(["RenameAccount"]);
    for (const wrong of [{ personId: "server" }, { method: "a'b" }, { from: "9999-12-31T23:59:60Z" }])
      expect(await owner.fail("ListActivity", wrong, accountId)).toMatch(/^400 /);
  });

  test("the page filters the activity by each method that changes an account, and by no other", () => {
    const ofOperators = AdminService.methods.filter(({ input }) =>
      input.fields.some(({ name }) => name === "account_id" || name === "key_id"),
    );
    const logged = [...memberPolicies].filter(([, policy]) => policy.logged).map(([{ name }]) => name);
    const filtered = ACTIVITY_METHODS.map(([method]) => method);
    expect(filtered).toEqual(expect.arrayContaining([...logged, ...changesOf({ methods: ofOperators })]));
    const known = [...logged, ...changesOf(AdminService)];
    expect(known).toEqual(expect.arrayContaining(filtered));
    const reads = [...memberPolicies.keys(), ...AdminService.methods].filter(
      ({ idempotency }) => idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    );
    expect(reads.filter(({ name }) => known.includes(name))).toEqual([]);
    // The activity shows neither that a person signs out nor a payment without money.
    const changes = [...memberPolicies.keys()].filter((method) => !reads.includes(method)).map(({ name }) => name);
    expect(changes.filter((name) => !logged.includes(name))).toEqual(["EndSession", "PaySimulatedTopUp", "WatchEvents"]);
  });

  test("the last owner stays, whoever asks, and two owners cannot remove each other at once", async () => {
    const { customer: owner, accountId } = await newOwner();
    const personId = await owner.personId();
    expect(await owner.fail("LeaveAccount", {}, accountId)).toBe("400 last_owner");
    expect(await owner.fail("SetMemberRole", { personId, role: "viewer" }, accountId)).toBe("400 last_owner");
    await expect(operator.removeMember({ accountId, personId, reason: "r" })).rejects.toThrow(/no other owner/);
    const second = await owner.admit("owner", accountId);
    const secondId = await second.personId();
    await Promise.all([
      owner.call("RemoveMember", { personId: secondId }, accountId),
      second.call("RemoveMember", { personId }, accountId),
    ]);
    const { members } = await operator.listMembers({ accountId });
    expect(members.map(({ role }) => role)).toEqual(["owner"]);
  });

  test("an invitation works once, until it is deleted", async () => {
    const { customer: owner, accountId } = await newOwner();
    const [first, other] = [await owner.invite("viewer", accountId), await newPerson()];
    await (await newPerson()).do("AcceptInvitation", { token: first });
    expect(await accept(other, first)).toBe(VOID);
    const second = await owner.invite("owner", accountId);
    const { invitations } = await owner.do("ListInvitations", {}, accountId);
    expect(invitations).toMatchObject([{ role: "owner" }]);
    expect(JSON.stringify(invitations)).not.toContain(second.split(".")[1]);
    const [{ id: invitationId }] = invitations as [{ id: string }];
    await owner.do("DeleteInvitation", { invitationId }, accountId);
    expect(await accept(other, second)).toBe(VOID);
  });

  test.each([
    ["is removed", "owner", "RemoveMember"],
    ["leaves", "self", "LeaveAccount"],
    ["gets another role", "owner", "SetMemberRole"],
  ] as const)("the links of an owner end when the person %s; those of others stay", async (_, by, method) => {
    const { customer: owner, accountId } = await newOwner();
    const second = await owner.admit("owner", accountId);
    const personId = await second.personId();
    const kept = await owner.invite("viewer", accountId);
    const ended = await second.invite("owner", accountId);
    await second.do("SetMemberRole", { personId, role: "owner" }, accountId);
    expect((await owner.do("ListInvitations", {}, accountId)).invitations).toHaveLength(2);
    const request = by === "self" ? {} : { personId, ...(method === "SetMemberRole" && { role: "viewer" }) };
    await (by === "self" ? second : owner).do(method, request, accountId);
    expect((await owner.do("ListInvitations", {}, accountId)).invitations).toMatchObject([{ createdBy: await owner.personId() }]);
    const stranger = await newPerson();
    expect([await accept(stranger, ended), await accept(stranger, kept)]).toEqual([VOID, "200 "]);
  });

  test.each([
    ["was removed", "DELETE FROM vx.members", "404 not_found"],
    ["has another role", "UPDATE vx.members SET role = 'viewer'", "403 insufficient_role"],
  ])("a change of a member who %s after the call was admitted is refused", async (_, change, refusal) => {
    const { customer: owner, accountId } = await newOwner();
    const second = await owner.admit("owner", accountId);
    const personId = await second.personId();
    const { call } = await app.database.owner.begin(async (sql) => {
      await sql`SELECT 1 FROM vx.lanes WHERE lane = vx.lane_of(${accountId}) FOR UPDATE`;
      const call = second.fail("CreateInvitation", { role: "owner" }, accountId);
      await untilWaiting(app, "create_invitation");
      await sql.unsafe(`${change} WHERE person_id = $1`, [personId]);
      return { call };
    });
    expect(await call).toBe(refusal);
    expect(await owner.do("ListInvitations", {}, accountId)).not.toHaveProperty("invitations");
  });

  test("of ten people who use one invitation at once, one becomes a member", async () => {
    const { customer: owner, accountId } = await newOwner();
    const token = await owner.invite("viewer", accountId);
    const crowd = await Promise.all(Array.from({ length: 10 }, newPerson));
    const answers = await Promise.all(crowd.map((person) => accept(person, token)));
    expect(answers.filter((answer) => answer === "200 ")).toHaveLength(1);
    expect((await owner.do("ListMembers", {}, accountId)).members).toHaveLength(2);
    // The others are not kept as people with an account.
    expect(await app.database.owner`SELECT FROM vx.person_accounts WHERE account_id = ${accountId}`).toHaveLength(2);
  });

  test("a suspended account is read and cannot be changed", async () => {
    const { customer, accountId } = await newOwner();
    await operator.suspendAccount({ accountId, reason: "r" });
    await customer.do("GetAccount", {}, accountId);
    await customer.do("ListKeys", {}, accountId);
    expect(await customer.fail("CreateKey", { name: "x" }, accountId)).toBe("403 account_suspended");
    expect(await customer.fail("CreateInvitation", { role: "viewer" }, accountId)).toBe("403 account_suspended");
  });

  test("an operator invites the first owner of an account", async () => {
    const accountId = (await operator.createAccount({ name: "Old customer" })).account?.id ?? "";
    const { url } = await operator.createInvitation({ accountId, role: "owner", reason: "asked by phone" });
    const person = await newPerson();
    expect((await person.do("AcceptInvitation", { token: tokenOf(url) })).accountId).toBe(accountId);
    expect(await person.do("GetSession")).toMatchObject({ accounts: [{ name: "Old customer", role: "owner" }] });
  });
});

describe("invitations of operators", () => {
  const ALLOWED = { support: ["viewer", "developer"], finance: ["viewer", "developer", "billing"], admin: ROLES };
  let operators = 0;

  /** An operator, and an account. */
  async function newOperator(role: string) {
    const accountId = (await operator.createAccount({ name: "invited" })).account?.id ?? "";
    const created = await operator.createOperator({ name: `operator ${++operators}`, role });
    const client = operatorOf(app, created.secret);
    const invite = async (invited: string) =>
      tokenOf((await client.createInvitation({ accountId, role: invited, reason: "r" })).url);
    return { accountId, operatorId: created.operator?.id ?? "", client, invite };
  }

  test.each(Object.entries(ALLOWED))("%s invites %j, and nobody else", async (role, allowed) => {
    const { accountId, client, invite } = await newOperator(role);
    for (const invited of ROLES) {
      if (allowed.includes(invited)) await invite(invited);
      else await expect(invite(invited)).rejects.toThrow(/The role support invites viewers and developers/);
    }
    const { invitations } = await client.listMembers({ accountId });
    expect(invitations.map((invitation) => invitation.role).sort()).toEqual([...allowed].sort());
  });

  test.each([
    ["was revoked", (operatorId: string) => operator.revokeOperator({ operatorId })],
    ["has a lower role", (operatorId: string) => operator.setOperatorRole({ operatorId, role: "finance" })],
  ])("the links of an operator who %s are void", async (_, withdraw) => {
    const { accountId, operatorId, invite } = await newOperator("admin");
    const token = await invite("owner");
    await withdraw(operatorId);
    expect(await accept(await newPerson(), token)).toBe(VOID);
    expect(await operator.listMembers({ accountId })).toMatchObject({ members: [], invitations: [] });
  });

  test("the revocation of the operator waits for an acceptance, and the next one is refused", async () => {
    const { owner } = app.database;
    const { accountId, operatorId, invite } = await newOperator("admin");
    const tokens = [await invite("viewer"), await invite("viewer")] as const;
    const [first, second] = [await newPerson(), await newPerson()];
    const { answers } = await owner.begin(async (sql) => {
      await sql`SELECT FROM vx.event_ends WHERE account_id = ${accountId} FOR UPDATE`;
      const acceptance = accept(first, tokens[0]);
      await untilWaiting(app, "accept_invitation");
      const revocation = operator.revokeOperator({ operatorId });
      await untilWaiting(app, "revoke_operator");
      return { answers: Promise.all([acceptance, revocation]) };
    });
    expect((await answers)[0]).toBe("200 ");
    expect(await accept(second, tokens[1])).toBe(VOID);
  });

  test("an acceptance that was admitted before the revocation of the operator is refused", async () => {
    const { accountId, operatorId, invite } = await newOperator("admin");
    const [token, person] = [await invite("owner"), await newPerson()];
    const { acceptance } = await app.database.owner.begin(async (sql) => {
      await sql`SELECT FROM vx.lanes WHERE lane = vx.lane_of(${accountId}) FOR UPDATE`;
      const acceptance = accept(person, token);
      await untilWaiting(app, "accept_invitation");
      await operator.revokeOperator({ operatorId });
      return { acceptance };
    });
    expect(await acceptance).toBe(VOID);
  });
});

describe("a removed member", () => {
  test("cannot use invitations for the own mailbox; those for others stay", async () => {
    const { customer: owner, accountId } = await newOwner();
    const member = await owner.admit("viewer", accountId);
    const tagged = member.email.replace("@", "+again@").toUpperCase();
    const ended = await owner.invite("owner", accountId, member.email);
    for (const email of [tagged, "other@example.com"]) await owner.invite("owner", accountId, email);
    await owner.do("RemoveMember", { personId: await member.personId() }, accountId);
    expect(await accept(member, ended)).toBe(VOID);
    expect((await owner.do("ListInvitations", {}, accountId)).invitations).toMatchObject([{ email: "other@example.com" }]);
  });

  test("loses the link to the account in the same transaction, and the link of the next membership stays", async () => {
    const { owner: sql } = app.database;
    const { customer: owner, accountId } = await newOwner();
    const member = await owner.admit("viewer", accountId);
    const personId = await member.personId();
    const linksOf = () => sql<{ link_id: string }[]>`
      SELECT link_id FROM vx.person_accounts WHERE person_id = ${personId}`;
    const { removal } = await sql.begin(async (transaction) => {
      await transaction`SELECT FROM vx.person_accounts WHERE person_id = ${personId} FOR UPDATE`;
      const removal = owner.do("RemoveMember", { personId }, accountId);
      await untilWaiting(app, "remove_member");
      return { removal };
    });
    const [former] = await linksOf();
    await removal;
    expect(await linksOf()).toHaveLength(0);
    await member.do("AcceptInvitation", { token: await owner.invite("viewer", accountId) });
    // As a server does for an account of another cell, after the person has joined again.
    await sql`SELECT vx.unlink_person(${personId}, ${accountId}, ${former?.link_id ?? ""}, false)`;
    expect(await member.do("GetSession")).toMatchObject({ accounts: [{ id: accountId, role: "viewer" }] });
  });

  test("who accepts several invitations at once has one link, and none after the removal", async () => {
    const { customer: owner, accountId } = await newOwner();
    const person = await newPerson();
    const tokens = [];
    for (let i = 0; i < 3; i++) tokens.push(await owner.invite("viewer", accountId));
    await Promise.all([...tokens, ...tokens].map((token) => accept(person, token)));
    const personId = await person.personId();
    const linked = () => app.database.owner`SELECT FROM vx.person_accounts WHERE person_id = ${personId}`;
    expect(await linked()).toHaveLength(1);
    expect((await owner.do("ListInvitations", {}, accountId)).invitations).toHaveLength(2);
    await owner.do("RemoveMember", { personId }, accountId);
    expect(await linked()).toHaveLength(0);
  });
});
