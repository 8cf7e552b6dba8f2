import { randomBytes } from "node:crypto";
import { create, type DescMethod, type DescMethodServerStreaming, type DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { AdminService } from "../../../gen/vx/admin/v1/admin_pb.js";
import { operatorServices } from "../../../src/api/services.ts";
import { fingerprintOf, generateOperatorToken } from "../../../src/domain/credentials.ts";
import { ROLES, type Role } from "../../../src/domain/operator.ts";
import { policyOf } from "../../../src/rules/policy.ts";
import type { IncomingCall } from "../../../src/server/call.ts";
import { operatorGate } from "../../../src/server/gate/gate.ts";
import { QUICKEST } from "../../support/any-method.ts";
import { OPERATOR_TOKEN, useOwnApp } from "../../support/app.ts";
import { dumpTables } from "../../support/database.ts";
import { createTestKey, operatorOf } from "../../support/fixtures.ts";
import { operatorProtocols } from "../../support/operator.ts";
import { bearer, type ProtocolCase } from "../../support/protocols.ts";
import { sendHttp1 } from "../../support/raw.ts";

const METRICS_TOKEN = "token-of-the-metrics";

let developerKey: string;
/** The tokens of all operators of this file. */
const secrets: string[] = [];

const admin = () => operatorOf(app);

async function createOperator(role: Role) {
  const created = await admin().createOperator({ name: `${role} ${secrets.length}`, role });
  secrets.push(created.secret);
  return created;
}

const app = useOwnApp({ env: { VX_METRICS_TOKEN: METRICS_TOKEN } });
beforeAll(async () => {
  developerKey = (await createTestKey(operatorOf(app))).secret;
});

const refused: readonly { what: string; headers: () => Record<string, string> }[] = [
  { what: "no token", headers: () => ({}) },
  { what: "a wrong token", headers: () => bearer("operator-token-of-the-testS") },
  { what: "a shorter token", headers: () => bearer(OPERATOR_TOKEN.slice(0, -1)) },
  { what: "a longer token", headers: () => bearer(`${OPERATOR_TOKEN}x`) },
  { what: "an empty token", headers: () => ({ authorization: "Bearer " }) },
  {
    what: "another scheme",
    headers: () => ({ authorization: `Basic ${Buffer.from(`x:${OPERATOR_TOKEN}`).toString("base64")}` }),
  },
  {
    what: "an unknown token of an operator",
    headers: () => bearer(generateOperatorToken(randomBytes)),
  },
  { what: "a developer's key", headers: () => bearer(developerKey) },
  { what: "only a cookie", headers: () => ({ cookie: `token=${OPERATOR_TOKEN}` }) },
];

const operatorMethods: readonly DescMethod[] = operatorServices.flatMap(({ methods }) => methods);
const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";
const isServerStream = (method: DescMethod): method is DescMethodServerStreaming => method.methodKind === "server_streaming";
const unaryMethods = operatorMethods.filter(isUnary);

test("every method of the operator API is unary or a stream of the server", () => {
  expect(operatorMethods.filter((method) => !isUnary(method) && !isServerStream(method))).toEqual([]);
});

async function expect401(open: ProtocolCase["open"], methods: readonly DescMethodUnary[], headers: object) {
  const caller = open(app.adminUrl);
  for (const method of methods) {
    const outcome = await caller.call(method, create(method.input), { ...headers });
    expect(outcome, method.name).toMatchObject({
      code: "unauthenticated",
      reason: "invalid_operator_token",
      headers: { "www-authenticate": "Bearer" },
    });
  }
  caller.close();
}

test.each(refused)("$what returns 401", async ({ headers }) => {
  await expect401(QUICKEST.open, [AdminService.method.listPlans, AdminService.method.creditAccount], headers());
});

test("every method of the operator API returns 401 without a token and with an unknown one", async () => {
  await expect401(QUICKEST.open, unaryMethods, {});
  await expect401(QUICKEST.open, unaryMethods, bearer(generateOperatorToken(randomBytes)));
});

test.each(operatorProtocols)("without a token, 401 over $name", async ({ open }) => {
  await expect401(open, [AdminService.method.listPlans], {});
});

test.each(refused)("$what: /metrics returns 401", async ({ headers }) => {
  const answer = await sendHttp1(app.adminUrl, { method: "GET", path: "/metrics", headers: headers() });
  expect(answer.status).toBe(401);
  expect(answer.headers["www-authenticate"]).toBe("Bearer");
  expect(JSON.parse(answer.body.toString()).error.code).toBe("invalid_operator_token");
});

test("/auth/session returns the operator of a token; without settings there is no sign-in", async () => {
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const { status, body } = await sendHttp1(app.adminUrl, { method: "GET", path, headers });
    return { status, body: JSON.parse(body.toString()) };
  };
  expect(await get("/auth/session")).toEqual({
    status: 200,
    body: { operator: null, session_expires_at: null, openid_connect: false },
  });
  const { operator, secret } = await createOperator("support");
  expect((await get("/auth/session", bearer(secret))).body.operator).toEqual({
    id: operator?.id,
    name: operator?.name,
    role: "support",
  });
  expect((await get("/auth/session", bearer(`${secret}x`))).status).toBe(401);
  for (const path of ["/auth/sign-in", "/auth/callback", "/auth/sign-out"]) expect((await get(path)).status).toBe(404);
});

test("the token for metrics reads /metrics, and no method accepts it", async () => {
  const get = (token: string) => sendHttp1(app.adminUrl, { method: "GET", path: "/metrics", headers: bearer(token) });
  expect((await get(METRICS_TOKEN)).status).toBe(200);
  expect((await get(`${METRICS_TOKEN}x`)).status).toBe(401);
  const caller = QUICKEST.open(app.adminUrl);
  for (const method of unaryMethods) {
    const outcome = await caller.call(method, create(method.input), bearer(METRICS_TOKEN));
    expect(outcome, method.name).toMatchObject({ reason: "invalid_operator_token" });
  }
  caller.close();
  expect(app.logText()).not.toContain(METRICS_TOKEN);
});

test("the token is accepted once and only in the header, not in the URL", async () => {
  const get = (path: string, headers: Record<string, string | string[]>) =>
    sendHttp1(app.adminUrl, { method: "GET", path, headers });
  const authorization = `Bearer ${OPERATOR_TOKEN}`;
  expect((await get("/metrics", { authorization })).status).toBe(200);
  expect((await get("/metrics", { authorization: [authorization, authorization] })).status).toBe(401);
  expect((await get(`/metrics?token=${OPERATOR_TOKEN}`, {})).status).toBe(401);
});

/** A request that lacks required fields was allowed. */
function ifInvalid(error: unknown): unknown {
  if (ConnectError.from(error).code === Code.InvalidArgument) return error;
  throw error;
}

describe("operators with tokens of their own", () => {
  test("a role may call its methods and those of the roles before it", async () => {
    const caller = QUICKEST.open(app.adminUrl);
    for (const role of ROLES) {
      const { secret } = await createOperator(role);
      for (const method of unaryMethods) {
        const needed = policyOf(method).role as Role;
        const outcome = await caller.call(method, create(method.input), bearer(secret));
        const isAllowed = ROLES.indexOf(role) >= ROLES.indexOf(needed);
        const what = `${role}: ${method.name}`;
        if (isAllowed) {
          expect(outcome.ok || outcome.reason, what).toSatisfy((reason) => reason === true || reason === "invalid_argument");
        } else {
          expect(outcome, what).toMatchObject({
            code: "permission_denied",
            reason: "insufficient_role",
            metadata: { role, required_role: needed },
          });
        }
      }
    }
    caller.close();
  });

  test.each(ROLES)("the role %s may read the streams of its role and those before it", async (role) => {
    const { secret } = await createOperator(role);
    const transport = createConnectTransport({ baseUrl: app.adminUrl, httpVersion: "1.1" });
    for (const method of operatorMethods.filter(isServerStream)) {
      const needed = policyOf(method).role as Role;
      const first = firstMessage(transport, method, bearer(secret));
      const isAllowed = ROLES.indexOf(role) >= ROLES.indexOf(needed);
      if (isAllowed) expect(await first.catch(ifInvalid), method.name).toBeDefined();
      else await expect(first, method.name).rejects.toThrow(/permission_denied.*role/);
    }
  });

  async function firstMessage(
    transport: Transport,
    method: DescMethodServerStreaming,
    headers: Record<string, string>,
  ): Promise<unknown> {
    const request = (async function* () {
      yield create(method.input);
    })();
    const { message } = await transport.stream(method, undefined, undefined, headers, request);
    for await (const first of message) return first;
    return undefined;
  }

  test("only methods that change nothing are open to viewers", () => {
    for (const method of operatorServices.flatMap(({ methods }) => methods)) {
      // Exports are for the role finance.
      if (method.name === "ExportUsage") continue;
      const reads = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
      expect(policyOf(method).role === "viewer", method.name).toBe(reads);
    }
  });

  test("a revoked token is refused at once, by every method and by /metrics", async () => {
    const { operator, secret } = await createOperator("finance");
    const call = QUICKEST.open(app.adminUrl);
    const metrics = () => sendHttp1(app.adminUrl, { method: "GET", path: "/metrics", headers: bearer(secret) });
    expect((await metrics()).status).toBe(200);
    const revoked = await admin().revokeOperator({ operatorId: operator?.id ?? "" });
    expect(revoked.operator).toMatchObject({ state: "revoked", lastUsedAt: expect.anything() });
    for (const method of unaryMethods) {
      const outcome = await call.call(method, create(method.input), bearer(secret));
      expect(outcome, method.name).toMatchObject({ reason: "invalid_operator_token" });
    }
    expect((await metrics()).status).toBe(401);
    expect((await admin().revokeOperator({ operatorId: operator?.id ?? "" })).operator).toEqual(revoked.operator);
    call.close();
  });

  test("a new role applies at once, and only admins give roles", async () => {
    const { operator, secret } = await createOperator("finance");
    const own = operatorOf(app, secret);
    const operatorId = operator?.id ?? "";
    const exportUsage = async () => {
      for await (const _ of own.exportUsage({}));
    };
    await exportUsage();
    expect(await outcomeOf(own.setOperatorRole({ operatorId, role: "admin" }))).toBe("INSUFFICIENT_ROLE");
    const lowered = await admin().setOperatorRole({ operatorId, role: "viewer", reason: "holiday" });
    expect(lowered.operator).toMatchObject({ id: operatorId, role: "viewer", state: "active" });
    expect(await outcomeOf(exportUsage())).toBe("INSUFFICIENT_ROLE");
    expect(await outcomeOf(own.listPlans({}))).toBe("done");
    await admin().setOperatorRole({ operatorId, role: "admin" });
    expect(await outcomeOf(own.setOperatorRole({ operatorId, role: "support" }))).toBe("done");
    expect(await outcomeOf(own.setOperatorRole({ operatorId, role: "admin" }))).toBe("INSUFFICIENT_ROLE");
    await admin().revokeOperator({ operatorId });
    await expect(admin().setOperatorRole({ operatorId, role: "admin" })).rejects.toThrow(
      /operator_id: must be an active operator/,
    );
    await expect(admin().setOperatorRole({ operatorId: "op_none", role: "admin" })).rejects.toThrow(/no operator "op_none"/);
  });

  test.each([
    ["revoked", (operatorId: string) => admin().revokeOperator({ operatorId })],
    ["lowered", (operatorId: string) => admin().setOperatorRole({ operatorId, role: "viewer" })],
  ])("one of two admins that are %s at once remains", async (_, change) => {
    await app.database.owner`UPDATE vx.operators SET revoked_at = clock_timestamp()`;
    const admins = [await createOperator("admin"), await createOperator("admin")];
    const outcomes = await Promise.all(admins.map(({ operator }) => outcomeOf(change(operator?.id ?? ""))));
    expect(outcomes.sort()).toEqual(["LAST_ADMIN", "done"]);
  });

  test("of two admins that lower each other at once, one remains admin", async () => {
    const [ada, bob] = [await createOperator("admin"), await createOperator("admin")];
    // The use of a token is recorded once a minute, which needs the lock of the table.
    for (const { secret } of [ada, bob]) await operatorOf(app, secret).listPlans({});
    const lower = (secret: string, operatorId = "") =>
      outcomeOf(operatorOf(app, secret).setOperatorRole({ operatorId, role: "support" }));
    const { owner } = app.database;
    const { outcomes } = await owner.begin(async (transaction) => {
      await transaction`LOCK TABLE vx.operators IN SHARE ROW EXCLUSIVE MODE`;
      const outcomes = [lower(ada.secret, bob.operator?.id), lower(bob.secret, ada.operator?.id)];
      await vi.waitFor(async () => {
        const waiting = await owner`
          SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'set_operator_role'`;
        expect(waiting).toHaveLength(2);
      });
      return { outcomes };
    });
    expect((await Promise.all(outcomes)).sort()).toEqual(["INSUFFICIENT_ROLE", "done"]);
  });

  test("a stream of an operator who no longer has the role ends", async () => {
    const operator = { kind: "operator" as const, id: "op_1", name: "ada", role: "finance" as Role };
    const logged: string[] = [];
    const gate = operatorGate({
      authenticate: async () => operator,
      logRefusal: async (_call, _operator, { reason }) => void logged.push(reason),
    });
    const { recheck } = await gate({ policy: policyOf(AdminService.method.exportUsage) } as IncomingCall, undefined);
    await recheck();
    operator.role = "support";
    await expect(recheck()).rejects.toMatchObject({ reason: "insufficient_role" });
    expect(logged).toEqual(["insufficient_role"]);
  });

  async function outcomeOf(call: Promise<unknown>): Promise<string | undefined> {
    return await call.then(
      () => "done",
      (error: ConnectError) => error.findDetails(ErrorInfoSchema)[0]?.reason,
    );
  }

  test("operators are listed newest first, in pages; a name is used by one active operator", async () => {
    const { operator } = await createOperator("viewer");
    const name = operator?.name ?? "";
    await expect(admin().createOperator({ name, role: "viewer" })).rejects.toThrow(/another active operator/);
    const { operators, nextPageToken } = await admin().listOperators({ pageSize: 1 });
    expect(operators).toEqual([operator]);
    expect((await admin().listOperators({ pageToken: nextPageToken })).operators).not.toContainEqual(operator);
    await admin().revokeOperator({ operatorId: operator?.id ?? "" });
    expect((await admin().createOperator({ name, role: "viewer" })).operator?.name).toBe(name);
    await expect(admin().revokeOperator({ operatorId: "op_none" })).rejects.toThrow(/no operator "op_none"/);
  });
});

test("no token is logged or stored, and none may be part of a request", async () => {
  const { operator, secret } = await createOperator("viewer");
  await operatorOf(app, secret).listPlans({});
  await expect(admin().createAccount({ name: `x ${secret}` })).rejects.toThrow(/must not contain an API key/);
  const written = app.logText() + (await dumpTables(app.database));
  expect(written).toContain(fingerprintOf(secret));
  expect(app.logText()).toContain(`"operator_id":"${operator?.id}"`);
  for (const token of [OPERATOR_TOKEN, ...secrets]) expect(written).not.toContain(token.slice(4));
});
