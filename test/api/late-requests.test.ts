// The body of a call arrives after its head was admitted, and meanwhile the caller has lost the right to it: every RPC of every service is
// refused as a new call is. `late-body.test.ts` has the metered methods, and `test/store/prove.test.ts` the functions that write.

import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, test, vi } from "vitest";
import { AccountService } from "../../gen/vx/account/v1/account_pb.js";
import { OPERATOR_SERVICES } from "../../src/api/services.ts";
import { type Policy, policiesOf } from "../../src/rules/policy.ts";
import { envelope } from "../../src/server/wire/rpc.ts";
import { isEndless, pathOf, rpcMethods } from "../support/any-method.ts";
import { Customer, useCustomerApp } from "../support/customer.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { type RawAnswer, sendHttp1, sendHttp2 } from "../support/raw.ts";

const app = useCustomerApp({
  VX_SIGN_UP: "open",
  VX_SIGN_UP_PLAN: "pro",
  VX_AUTH_FAILURES_PER_MINUTE: "100000",
});
const root = useOperator(app);
const sql = () => app.database.owner;

const policies = policiesOf([
  ...new Set([...rpcMethods, ...AccountService.methods].map(({ parent }) => parent)),
  ...OPERATOR_SERVICES.map(({ service }) => service),
]);
const policyOf = (method: DescMethod) => policies.get(method) as Policy;

type Form = { readonly send: typeof sendHttp1; readonly type: (method: DescMethod) => string };
const CONNECT: Form = {
  send: sendHttp1,
  type: ({ methodKind }) => (methodKind === "unary" ? "application/json" : "application/connect+json"),
};
const FORMS: readonly [string, Form][] = [
  ["Connect", CONNECT],
  ["gRPC", { send: sendHttp2, type: () => "application/grpc+json" }],
  ["gRPC-Web", { send: sendHttp1, type: () => "application/grpc-web+json" }],
];

type Late = {
  readonly url: string;
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
    path: pathOf(method),
    headers: { "content-type": contentType, te: "trailers", ...late.headers },
    body: arrival.promise,
  });
  await late.admitted();
  await late.withdraw();
  arrival.resolve(/grpc|connect/.test(contentType) ? envelope(0, json) : json);
  return reasonsIn(await answer);
}

/** The reason of an error is in its body, or in a detail of gRPC, where it is in upper case. */
function reasonsIn({ headers, body }: RawAnswer): string {
  const details = `${headers["grpc-status-details-bin"] ?? ""} ${body.toString("latin1")}`;
  const decoded = details.match(/[\w+/]{40,}/g)?.map((text) => Buffer.from(text, "base64").toString("latin1"));
  return `${details} ${decoded?.join(" ")}`.toLowerCase();
}

/**
 * The first withdrawal is tried with every method; the others with one method of each policy, because the policy is all that
 * the gate knows of a method.
 */
function methodsFor(all: readonly DescMethod[], isFirst: boolean, applies: (policy: Policy) => boolean): readonly DescMethod[] {
  const methods = all.filter((method) => applies(policyOf(method)));
  if (isFirst) return methods;
  return [...new Map(methods.map((method) => [JSON.stringify(policyOf(method)), method])).values()];
}

const eventually = (rows: () => PromiseLike<readonly object[]>) =>
  vi.waitFor(async () => expect(await rows()).toHaveLength(1), { interval: 5 });

describe("a key", () => {
  const METHODS = rpcMethods.filter((method) => !policyOf(method).metered);
  const setKey = (key: TestKey, change: object, path: string) =>
    root.updateKey({ keyId: key.id, ...change, updateMask: { paths: [path] } });
  const WITHDRAWALS: readonly [string, string, (policy: Policy) => boolean, (key: TestKey) => PromiseLike<unknown>][] = [
    ["is revoked", "revoked_api_key", () => true, ({ id }) => root.revokeKey({ keyId: id })],
    ["is rotated", "expired_api_key", () => true, ({ id }) => root.rotateKey({ keyId: id })],
    ["expires", "expired_api_key", () => true, ({ id }) => sql()`UPDATE vx.keys SET expires_at = now() WHERE id = ${id}`],
    [
      "is of an account that is suspended",
      "account_suspended",
      ({ whileSuspended }) => !whileSuspended,
      ({ accountId }) => root.suspendAccount({ accountId, reason: "test" }),
    ],
    [
      "loses the scope",
      "insufficient_scope",
      ({ scope }) => scope !== undefined,
      (key) => setKey(key, { scopes: ["generate"] }, "scopes"),
    ],
    [
      "gets other address ranges",
      "address_not_allowed",
      () => true,
      (key) => setKey(key, { allowedCidrs: ["192.0.2.0/24"] }, "allowed_cidrs"),
    ],
  ];

  test.each(
    FORMS.flatMap(([name, form], i) =>
      WITHDRAWALS.slice(0, i === 0 ? WITHDRAWALS.length : 1).map(([what, ...rest]) => [what, name, form, ...rest] as const),
    ),
  )("that %s, over %s", async (_what, _form, form, reason, applies, withdraw) => {
    const scopes = ["generate", "read", "keys", "webhooks", "billing"];
    const methods = methodsFor(METHODS, reason === "revoked_api_key", applies).filter(
      (method) => policyOf(method).scope !== "generate",
    );
    const found = await Promise.all(
      methods.map(async (method) => {
        const key = await createTestKey(root, { scopes });
        const reasons = await lateCall(method, form, {
          url: app.url,
          headers: bearer(key.secret),
          admitted: () => eventually(() => sql()`SELECT FROM vx.key_minutes WHERE key_id = ${key.id}`),
          withdraw: () => withdraw(key),
        });
        return [pathOf(method), reasons.includes(reason) ? reason : reasons];
      }),
    );
    expect(found).toEqual(methods.map((method) => [pathOf(method), reason]));
    expect(found.length).toBeGreaterThan(reason === "revoked_api_key" ? 15 : 3);
  });
});

let people = 0;

describe("a member", () => {
  const METHODS = AccountService.methods.filter((method) => !isEndless(method));
  const isOfAccount = ({ memberRole }: Policy) => memberRole !== "person";
  const WITHDRAWALS: readonly [
    string,
    string,
    (policy: Policy) => boolean,
    (id: string, accountId: string) => PromiseLike<unknown>,
  ][] = [
    [
      "whose session was ended",
      "invalid_session",
      () => true,
      (id) => sql()`DELETE FROM vx.page_sessions WHERE person_id = ${id}`,
    ],
    ["who was removed", "not_found", isOfAccount, (id) => sql()`DELETE FROM vx.members WHERE person_id = ${id}`],
    [
      "who has another role",
      "insufficient_role",
      (policy) => isOfAccount(policy) && policy.memberRole !== "viewer",
      (id) => sql()`UPDATE vx.members SET role = 'viewer' WHERE person_id = ${id}`,
    ],
    [
      "of an account that is suspended",
      "account_suspended",
      (policy) => isOfAccount(policy) && !policy.whileSuspended,
      (_, accountId) => root.suspendAccount({ accountId, reason: "test" }),
    ],
  ];

  test.each(WITHDRAWALS)("%s", async (_, reason, applies, withdraw) => {
    const methods = methodsFor(METHODS, reason === "invalid_session", applies);
    const found = [];
    for (const method of methods) {
      const { customer, accountId } = await Customer.signUp(app, `late${++people}@example.com`);
      const personId = ((await customer.do("GetSession")) as { personId: string }).personId;
      const ofAccount = isOfAccount(policyOf(method));
      // The gate writes the time of use of an old session, then the address of the member.
      await sql()`UPDATE vx.page_sessions SET used_at = used_at - interval '2 minutes' WHERE person_id = ${personId}`;
      await sql()`UPDATE vx.members SET email = 'old' WHERE person_id = ${personId}`;
      const reasons = await lateCall(method, CONNECT, {
        url: app.url,
        headers: {
          "connect-protocol-version": "1",
          origin: app.url,
          "sec-fetch-site": "same-origin",
          cookie: customer.cookie,
          "x-vx-account": accountId,
        },
        admitted: () =>
          eventually(() =>
            ofAccount
              ? sql()`SELECT FROM vx.members WHERE person_id = ${personId} AND email <> 'old'`
              : sql()`SELECT FROM vx.page_sessions WHERE person_id = ${personId} AND used_at > now() - interval '1 minute'`,
          ),
        withdraw: () => withdraw(personId, accountId),
      });
      found.push([pathOf(method), reasons.includes(reason) ? reason : reasons]);
    }
    expect(found).toEqual(methods.map((method) => [pathOf(method), reason]));
    expect(found.length).toBeGreaterThan(reason === "invalid_session" ? 10 : 2);
  });
});

describe("an operator", () => {
  const METHODS = OPERATOR_SERVICES.flatMap(({ service }) => service.methods).filter(({ name }) => !name.startsWith("Watch"));
  const WITHDRAWALS: readonly [string, string, (policy: Policy) => boolean, (id: string) => PromiseLike<unknown>][] = [
    ["who was revoked", "invalid_operator_token", () => true, (operatorId) => root.revokeOperator({ operatorId })],
    [
      "with another role",
      "insufficient_role",
      ({ role }) => role !== "viewer",
      (operatorId) => root.setOperatorRole({ operatorId, role: "viewer" }),
    ],
  ];

  test.each(WITHDRAWALS)("%s", async (_, reason, applies, withdraw) => {
    const methods = methodsFor(METHODS, reason === "invalid_operator_token", applies);
    // The last admin could not be revoked.
    await root.createOperator({ name: `other${++people}`, role: "admin" });
    const found = [];
    for (const method of methods) {
      const { operator, secret } = await root.createOperator({ name: `late${++people}`, role: "admin" });
      const id = operator?.id ?? "";
      const reasons = await lateCall(method, CONNECT, {
        url: app.adminUrl,
        headers: bearer(secret),
        admitted: () => eventually(() => sql()`SELECT FROM vx.operators WHERE id = ${id} AND last_used_at IS NOT NULL`),
        withdraw: () => withdraw(id),
      });
      found.push([pathOf(method), reasons.includes(reason) ? reason : reasons]);
    }
    expect(found).toEqual(methods.map((method) => [pathOf(method), reason]));
    expect(found.length).toBeGreaterThan(reason === "invalid_operator_token" ? 20 : 2);
  });
});
