// The body of a call arrives after its head was admitted, and meanwhile the caller has lost the right to it: every RPC of every service is
// refused as a new call is. `late-body.test.ts` has the metered methods, and `test/database/prove.test.ts` the functions that write.

import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, test, vi } from "vitest";
import { type Policy, policiesOf } from "../../src/rules/policy.ts";
import { OPERATOR_SERVICES } from "../../src/server/services.ts";
import { envelope } from "../../src/server/wire/rpc.ts";
import { pathOf, rpcMethods } from "../support/any-method.ts";
import { Customer, memberMethods, memberPathOf, memberPolicies, useCustomerApp } from "../support/customer.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { reasonsIn, sendHttp1, sendHttp2 } from "../support/raw.ts";

const app = useCustomerApp({ VX_SIGN_UP: "open", VX_SIGN_UP_PLAN: "pro", VX_AUTH_FAILURES_PER_MINUTE: "100000" });
const root = useOperator(app);
const sql = () => app.database.owner;

const policies = policiesOf([
  ...new Set(rpcMethods.map(({ parent }) => parent)),
  ...OPERATOR_SERVICES.map(({ service }) => service),
]);
const policyOf = (method: DescMethod) => policies.get(method) as Policy;

type Form = { readonly send: typeof sendHttp1; readonly type: (method: DescMethod) => string };
const CONNECT: Form = {
  send: sendHttp1,
  type: ({ methodKind }) => (methodKind === "unary" ? "application/json" : "application/connect+json"),
};
const OTHER_FORMS: readonly [string, Form][] = [
  ["gRPC", { send: sendHttp2, type: () => "application/grpc+json" }],
  ["gRPC-Web", { send: sendHttp1, type: () => "application/grpc-web+json" }],
];

type Late = {
  readonly url: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  /** Resolves when the gate has admitted the call. */
  readonly admitted: () => Promise<void>;
  readonly withdraw: () => PromiseLike<unknown>;
};

/** Calls the method with an empty request that arrives after the withdrawal. Returns the reasons in the answer. */
async function lateCall(method: DescMethod, { send, type }: Form, late: Late): Promise<string> {
  const contentType = type(method);
  const json = Buffer.from("{}");
  const arrival = Promise.withResolvers<Uint8Array>();
  const answer = send(late.url, {
    path: late.path,
    headers: { "content-type": contentType, te: "trailers", ...late.headers },
    body: arrival.promise,
  });
  await late.admitted();
  await late.withdraw();
  arrival.resolve(/grpc|connect/.test(contentType) ? envelope(0, json) : json);
  return reasonsIn(await answer);
}

/** One method of each policy and kind: all that the gate knows of a method. Calls of other methods differ for the first withdrawal only. */
function oneOfEach(methods: readonly DescMethod[], of: typeof policyOf): readonly DescMethod[] {
  return [...new Map(methods.map((method) => [JSON.stringify([of(method), method.methodKind]), method])).values()];
}

const eventually = (rows: () => PromiseLike<readonly object[]>) =>
  vi.waitFor(async () => expect(await rows()).toHaveLength(1), { interval: 5 });

/** Every method is refused for the reason. The paths and what was found instead. */
function expectReasons(methods: readonly DescMethod[], found: readonly string[], reason: string, atLeast: number): void {
  const named = methods.map((method, i) => [pathOf(method), found[i]?.includes(reason) ? reason : found[i]]);
  expect(named).toEqual(methods.map((method) => [pathOf(method), reason]));
  expect(named.length).toBeGreaterThan(atLeast);
}

describe("a key", () => {
  const METHODS = rpcMethods.filter((method) => !policyOf(method).metered && policyOf(method).scope !== "generate");
  const set = (keyId: string, change: object, path: string) =>
    root.updateKey({ keyId, ...change, updateMask: { paths: [path] } });
  type Withdrawal = [what: string, reason: string, (policy: Policy) => boolean, (key: TestKey) => PromiseLike<unknown>];
  // biome-ignore format: a row a line
  const WITHDRAWALS: readonly Withdrawal[] = [
    ["is revoked", "revoked_api_key", () => true, ({ id }) => root.revokeKey({ keyId: id })],
    ["is rotated", "expired_api_key", () => true, ({ id }) => root.rotateKey({ keyId: id })],
    ["expires", "expired_api_key", () => true, ({ id }) => sql()`UPDATE vx.keys SET expires_at = now() WHERE id = ${id}`],
    ["is of an account that is suspended", "account_suspended", ({ whileSuspended }) => !whileSuspended, ({ accountId }) => root.suspendAccount({ accountId, reason: "test" })],
    ["loses the scope", "insufficient_scope", ({ scope }) => scope !== undefined, ({ id }) => set(id, { scopes: ["generate"] }, "scopes")],
    ["gets other address ranges", "address_not_allowed", () => true, ({ id }) => set(id, { allowedCidrs: ["192.0.2.0/24"] }, "allowed_cidrs")],
  ];

  test.each([
    ...WITHDRAWALS.map((row) => ["Connect", CONNECT, ...row] as const),
    ...OTHER_FORMS.map((form) => [...form, ...(WITHDRAWALS[0] as Withdrawal)] as const),
  ])("over %s, %o, that %s", async (name, form, _what, reason, applies, withdraw) => {
    const all = METHODS.filter((method) => applies(policyOf(method)));
    const methods = name === "Connect" && reason === "revoked_api_key" ? all : oneOfEach(all, policyOf);
    const late = async (method: DescMethod) => {
      const key = await createTestKey(root, { scopes: ["generate", "read", "keys", "webhooks", "billing"] });
      return await lateCall(method, form, {
        url: app.url,
        path: pathOf(method),
        headers: bearer(key.secret),
        admitted: () => eventually(() => sql()`SELECT FROM vx.key_minutes WHERE key_id = ${key.id}`),
        withdraw: () => withdraw(key),
      });
    };
    expectReasons(methods, await Promise.all(methods.map(late)), reason, methods === all ? 15 : 3);
  });
});

describe("a member", () => {
  const memberPolicyOf = (method: DescMethod) => memberPolicies.get(method) as Policy;
  const isOfAccount = ({ memberRole }: Policy) => memberRole !== "person";
  /** Deletes the person's rows of a table. The returned function restores them. */
  const remove = async (table: string, id: string) => {
    const rows = await sql()`DELETE FROM ${sql()(table)} WHERE person_id = ${id} RETURNING *`;
    return () => sql()`INSERT INTO ${sql()(table)} ${sql()(rows)}`;
  };
  const setRole = async (id: string, role: string) => await sql()`UPDATE vx.members SET role = ${role} WHERE person_id = ${id}`;
  type Restore = () => PromiseLike<unknown>;
  type Withdraw = (personId: string, accountId: string) => Promise<Restore>;
  const demote: Withdraw = async (id) => {
    await setRole(id, "viewer");
    return () => setRole(id, "owner");
  };
  const suspend: Withdraw = async (_, accountId) => {
    await root.suspendAccount({ accountId, reason: "test" });
    return () => root.resumeAccount({ accountId, reason: "test" });
  };

  test.each<[string, string, (policy: Policy) => boolean, Withdraw]>([
    ["whose session was ended", "invalid_session", () => true, (id) => remove("vx.page_sessions", id)],
    ["who was removed", "not_found", isOfAccount, (id) => remove("vx.members", id)],
    ["who has another role", "insufficient_role", (policy) => isOfAccount(policy) && policy.memberRole !== "viewer", demote],
    ["of an account that is suspended", "account_suspended", (policy) => isOfAccount(policy) && !policy.whileSuspended, suspend],
  ])("%s", async (_, reason, applies, withdraw) => {
    const all = memberMethods.filter((method) => applies(memberPolicyOf(method)));
    const methods = reason === "invalid_session" ? all : oneOfEach(all, memberPolicyOf);
    const { customer, accountId } = await Customer.signUp(app, `${reason}@example.com`);
    const { personId } = (await customer.do("GetSession")) as { personId: string };
    const headers = {
      "connect-protocol-version": "1",
      origin: app.url,
      "sec-fetch-site": "same-origin",
      cookie: customer.cookie,
      "x-vx-account": accountId,
    };
    const found: string[] = [];
    for (const method of methods) {
      // The gate writes the time of use of an old session, then the address of the member.
      await sql()`UPDATE vx.page_sessions SET used_at = used_at - interval '2 minutes' WHERE person_id = ${personId}`;
      await sql()`UPDATE vx.members SET email = 'old' WHERE person_id = ${personId}`;
      const written = () =>
        isOfAccount(memberPolicyOf(method))
          ? sql()`SELECT FROM vx.members WHERE person_id = ${personId} AND email <> 'old'`
          : sql()`SELECT FROM vx.page_sessions WHERE person_id = ${personId} AND used_at > now() - interval '1 minute'`;
      let restore: Restore = async () => undefined;
      const late = {
        url: app.url,
        path: memberPathOf(method),
        headers,
        admitted: () => eventually(written),
        withdraw: async () => {
          restore = await withdraw(personId, accountId);
        },
      };
      found.push(await lateCall(method, CONNECT, late));
      await restore();
    }
    expectReasons(methods, found, reason, methods === all ? 50 : 2);
  });
});

describe("an operator", () => {
  const METHODS = OPERATOR_SERVICES.flatMap(({ service }) => service.methods).filter(({ name }) => !name.startsWith("Watch"));
  let people = 0;

  test.each<[string, string, (policy: Policy) => boolean, (id: string) => PromiseLike<unknown>]>([
    ["who was revoked", "invalid_operator_token", () => true, (operatorId) => root.revokeOperator({ operatorId })],
    [
      "with another role",
      "insufficient_role",
      ({ role }) => role !== "viewer",
      (operatorId) => root.setOperatorRole({ operatorId, role: "viewer" }),
    ],
  ])("%s", async (_, reason, applies, withdraw) => {
    const all = METHODS.filter((method) => applies(policyOf(method)));
    const methods = reason === "invalid_operator_token" ? all : oneOfEach(all, policyOf);
    // The last admin could not be revoked.
    await root.createOperator({ name: `other${++people}`, role: "admin" });
    const late = async (method: DescMethod) => {
      const { operator, secret } = await root.createOperator({ name: `late${++people}`, role: "admin" });
      const id = operator?.id ?? "";
      return await lateCall(method, CONNECT, {
        url: app.adminUrl,
        path: pathOf(method),
        headers: bearer(secret),
        admitted: () => eventually(() => sql()`SELECT FROM vx.operators WHERE id = ${id} AND last_used_at IS NOT NULL`),
        withdraw: () => withdraw(id),
      });
    };
    expectReasons(methods, await Promise.all(methods.map(late)), reason, methods === all ? 20 : 2);
  });
});
