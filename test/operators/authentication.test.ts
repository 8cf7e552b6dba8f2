import { randomBytes } from "node:crypto";
import { create, type DescMethod, type DescMethodServerStreaming, type DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { fingerprintOf, generateOperatorToken } from "../../src/domain/credentials.ts";
import { ROLES, type Role } from "../../src/domain/operator.ts";
import { policyOf } from "../../src/rules/policy.ts";
import type { Call } from "../../src/server/call.ts";
import { authenticateOperator } from "../../src/server/interceptors/authenticate-operator.ts";
import { operatorServices } from "../../src/server/services.ts";
import { QUICKEST } from "../support/any-method.ts";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { dumpTables } from "../support/database.ts";
import { createTestKey, operatorOf, useOperator } from "../support/fixtures.ts";
import { operatorProtocols } from "../support/operator.ts";
import { bearer, type ProtocolCase } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";

const METRICS_TOKEN = "token-of-the-metrics";

let developerKey: string;
/** The tokens of all operators of this file. */
const secrets: string[] = [];

async function createOperator(role: Role) {
  const created = await admin.createOperator({ name: `${role} ${secrets.length}`, role });
  secrets.push(created.secret);
  return created;
}

const app = useOwnApp({ env: { VX_METRICS_TOKEN: METRICS_TOKEN } });
const admin = useOperator(app);
beforeAll(async () => {
  developerKey = (await createTestKey(admin)).secret;
});

const refused: readonly [what: string, headers: () => Record<string, string>][] = [
  ["no token", () => ({})],
  ["a wrong token", () => bearer("operator-token-of-the-testS")],
  ["a shorter token", () => bearer(OPERATOR_TOKEN.slice(0, -1))],
  ["a longer token", () => bearer(`${OPERATOR_TOKEN}x`)],
  ["an empty token", () => ({ authorization: "Bearer " })],
  ["another scheme", () => ({ authorization: `Basic ${Buffer.from(`x:${OPERATOR_TOKEN}`).toString("base64")}` })],
  ["an unknown token of an operator", () => bearer(generateOperatorToken(randomBytes))],
  ["a developer's key", () => bearer(developerKey)],
  ["only a cookie", () => ({ cookie: `token=${OPERATOR_TOKEN}; vx_session=${OPERATOR_TOKEN}` })],
];

const operatorMethods: readonly DescMethod[] = operatorServices.flatMap(({ methods }) => methods);
const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";
const isServerStream = (method: DescMethod): method is DescMethodServerStreaming => method.methodKind === "server_streaming";

test("every method of the operator API is unary or a stream of the server", () => {
  expect(operatorMethods.filter((method) => !isUnary(method) && !isServerStream(method))).toEqual([]);
});

async function expect401(open: ProtocolCase["open"], headers: Record<string, string>) {
  const caller = open(app.adminUrl);
  for (const method of [AdminService.method.listPlans, AdminService.method.creditAccount] as readonly DescMethodUnary[]) {
    const refusal = { code: "unauthenticated", reason: "invalid_operator_token", headers: { "www-authenticate": "Bearer" } };
    expect(await caller.call(method, create(method.input), headers), method.name).toMatchObject(refusal);
  }
  caller.close();
}

const getMetrics = (headers: Record<string, string | string[]>, query = "") =>
  sendHttp1(app.adminUrl, { method: "GET", path: `/metrics${query}`, headers });

test.each(refused)("%s returns 401", async (_, headers) => {
  await expect401(QUICKEST.open, headers());
  const answer = await getMetrics(headers());
  expect([answer.status, answer.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
  expect(JSON.parse(answer.body.toString()).error.code).toBe("invalid_operator_token");
});

test.each(operatorProtocols)("without a token, 401 over $name", ({ open }) => expect401(open, {}));

test("/auth/session returns the operator of a token; without settings there is no sign-in", async () => {
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const { status, body } = await sendHttp1(app.adminUrl, { method: "GET", path, headers });
    return { status, body: JSON.parse(body.toString()) };
  };
  const nobody = { operator: null, session_expires_at: null, openid_connect: false };
  expect(await get("/auth/session")).toEqual({ status: 200, body: nobody });
  const { operator, secret } = await createOperator("support");
  const own = { id: operator?.id, name: operator?.name, role: "support" };
  expect((await get("/auth/session", bearer(secret))).body.operator).toEqual(own);
  expect((await get("/auth/session", bearer(`${secret}x`))).status).toBe(401);
  for (const path of ["/auth/sign-in", "/auth/callback", "/auth/sign-out"]) expect((await get(path)).status).toBe(404);
});

test("the token for metrics reads /metrics, and no method accepts it", async () => {
  expect((await getMetrics(bearer(METRICS_TOKEN))).status).toBe(200);
  expect((await getMetrics(bearer(`${METRICS_TOKEN}x`))).status).toBe(401);
  await expect401(QUICKEST.open, bearer(METRICS_TOKEN));
  expect(app.logText()).not.toContain(METRICS_TOKEN);
});

test("the token is accepted once and only in the header, not in the URL", async () => {
  const authorization = `Bearer ${OPERATOR_TOKEN}`;
  expect((await getMetrics({ authorization })).status).toBe(200);
  expect((await getMetrics({ authorization: [authorization, authorization] })).status).toBe(401);
  expect((await getMetrics({}, `?token=${OPERATOR_TOKEN}`)).status).toBe(401);
});

describe("operators with tokens of their own", () => {
  test("every method is open to its role, and neither to the role before it nor without a token", async () => {
    const tokens = new Map<Role | undefined, string>();
    for (const role of ROLES) tokens.set(role, (await createOperator(role)).secret);
    for (const method of operatorMethods) {
      const { role } = policyOf(method) as { role: Role };
      const before = ROLES[ROLES.indexOf(role) - 1];
      expect(await refusalOf(method, bearer(tokens.get(role) ?? "")), method.name).toBe("");
      expect(await refusalOf(method, {}), method.name).toBe("invalid_operator_token");
      if (before) expect(await refusalOf(method, bearer(tokens.get(before) ?? "")), method.name).toBe("insufficient_role");
    }
    const support = bearer(tokens.get("support") ?? "");
    const outcome = await QUICKEST.open(app.adminUrl).call(AdminService.method.putPlan, {}, support);
    expect(outcome).toMatchObject({ code: "permission_denied", metadata: { role: "support", required_role: "admin" } });
  });

  test.each(ROLES)("the role %s may call the methods of the roles before it, and no other ones", async (role) => {
    const { secret } = await createOperator(role);
    const methods = ROLES.map((needed) => operatorMethods.find((method) => isUnary(method) && policyOf(method).role === needed));
    const refusals = await Promise.all(methods.map((method) => method && refusalOf(method, bearer(secret))));
    expect(refusals).toEqual(ROLES.map((_, place) => (place <= ROLES.indexOf(role) ? "" : "insufficient_role")));
  });

  /** Why a call without the required fields is refused; empty if it is allowed. */
  async function refusalOf(method: DescMethod, headers: Record<string, string>): Promise<string> {
    const error = await first(method, headers).catch(ConnectError.from);
    if (!(error instanceof ConnectError) || error.code === Code.InvalidArgument) return "";
    return error.findDetails(ErrorInfoSchema)[0]?.reason.toLowerCase() ?? error.message;
  }

  /** The first message of a response. */
  async function first(method: DescMethod, headers: Record<string, string>): Promise<unknown> {
    const transport = createConnectTransport({ baseUrl: app.adminUrl, httpVersion: "1.1" });
    if (isUnary(method)) return await transport.unary(method, undefined, undefined, headers, create(method.input));
    const request = (async function* () {
      yield create(method.input);
    })();
    const { message } = await transport.stream(method as DescMethodServerStreaming, undefined, undefined, headers, request);
    for await (const one of message) return one;
    return undefined;
  }

  test("only methods that change nothing are open to viewers", () => {
    for (const method of operatorMethods) {
      // Exports are for the role finance.
      if (method.name === "ExportUsage") continue;
      const reads = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
      expect(policyOf(method).role === "viewer", method.name).toBe(reads);
    }
  });

  test("a revoked token is refused at once, by methods and by /metrics", async () => {
    const { operator, secret } = await createOperator("finance");
    const operatorId = operator?.id ?? "";
    expect((await getMetrics(bearer(secret))).status).toBe(200);
    const revoked = await admin.revokeOperator({ operatorId });
    expect(revoked.operator).toMatchObject({ state: "revoked", lastUsedAt: expect.anything() });
    await expect401(QUICKEST.open, bearer(secret));
    expect((await getMetrics(bearer(secret))).status).toBe(401);
    expect((await admin.revokeOperator({ operatorId })).operator).toEqual(revoked.operator);
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
    const lowered = await admin.setOperatorRole({ operatorId, role: "viewer", reason: "holiday" });
    expect(lowered.operator).toMatchObject({ id: operatorId, role: "viewer", state: "active" });
    expect(await outcomeOf(exportUsage())).toBe("INSUFFICIENT_ROLE");
    expect(await outcomeOf(own.listPlans({}))).toBe("done");
    await admin.setOperatorRole({ operatorId, role: "admin" });
    expect(await outcomeOf(own.setOperatorRole({ operatorId, role: "support" }))).toBe("done");
    expect(await outcomeOf(own.setOperatorRole({ operatorId, role: "admin" }))).toBe("INSUFFICIENT_ROLE");
    await admin.revokeOperator({ operatorId });
    const reactivated = admin.setOperatorRole({ operatorId, role: "admin" });
    await expect(reactivated).rejects.toThrow(/operator_id: must be an active operator/);
    await expect(admin.setOperatorRole({ operatorId: "op_none", role: "admin" })).rejects.toThrow(/no operator "op_none"/);
  });

  test.each([
    ["revoked", (operatorId: string) => admin.revokeOperator({ operatorId })],
    ["lowered", (operatorId: string) => admin.setOperatorRole({ operatorId, role: "viewer" })],
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
    const authenticate = authenticateOperator({
      authenticate: async () => operator,
      logRefusal: async (_call, _operator, { reason }) => void logged.push(reason),
    });
    const call = { policy: policyOf(AdminService.method.exportUsage), setHeader: () => undefined } as unknown as Call;
    await authenticate(async () => undefined)(call);
    await call.admitted?.recheck();
    operator.role = "support";
    await expect(call.admitted?.recheck()).rejects.toMatchObject({ reason: "insufficient_role" });
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
    await expect(admin.createOperator({ name, role: "viewer" })).rejects.toThrow(/another active operator/);
    const { operators, nextPageToken } = await admin.listOperators({ pageSize: 1 });
    expect(operators).toEqual([operator]);
    expect((await admin.listOperators({ pageToken: nextPageToken })).operators).not.toContainEqual(operator);
    await admin.revokeOperator({ operatorId: operator?.id ?? "" });
    expect((await admin.createOperator({ name, role: "viewer" })).operator?.name).toBe(name);
    await expect(admin.revokeOperator({ operatorId: "op_none" })).rejects.toThrow(/no operator "op_none"/);
  });
});

test("no token is logged or stored, and none may be part of a request", async () => {
  const { operator, secret } = await createOperator("viewer");
  await operatorOf(app, secret).listPlans({});
  await expect(admin.createAccount({ name: `x ${secret}` })).rejects.toThrow(/must not contain an API key/);
  const written = app.logText() + (await dumpTables(app.database));
  expect(written).toContain(fingerprintOf(secret));
  expect(app.logText()).toContain(`"operator_id":"${operator?.id}"`);
  for (const token of [OPERATOR_TOKEN, ...secrets]) expect(written).not.toContain(token.slice(4));
});
