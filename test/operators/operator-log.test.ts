import { type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import {
  AdminService,
  type ListOperatorEventsRequestSchema,
  type OperatorEvent,
  OperatorEventSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { callerOf, SERVER } from "../../src/database/action.ts";
import { fingerprintOf } from "../../src/domain/credentials.ts";
import { pagesRead } from "../database/pages-read.ts";
import { sendJson } from "../rest/send-json.ts";
import { TEST_ACTION, TEST_CALLER } from "../support/action.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestAccount, createTestKey, type Operator, operatorOf, type TestKey, useOperator } from "../support/fixtures.ts";
import { createPaidKey } from "../support/openai.ts";

/** The holder of VX_ADMIN_TOKEN, and an operator of each kind. */
let admin: Operator;
let adminId: string;
let viewer: Operator;
let viewerId: string;

const stripe = { VX_STRIPE_SECRET_KEY: "sk_test_unused", VX_STRIPE_WEBHOOK_SECRET: "whsec_unused" };
const app = useOwnApp({ env: { ...stripe, VX_STRIPE_API: "http://127.0.0.1:1" } });
const root = useOperator(app);
beforeAll(async () => {
  const ada = await root.createOperator({ name: "ada", role: "admin" });
  const vic = await root.createOperator({ name: "vic", role: "viewer" });
  adminId = ada.operator?.id ?? "";
  admin = operatorOf(app, ada.secret);
  viewerId = vic.operator?.id ?? "";
  viewer = operatorOf(app, vic.secret);
});

async function events(filter: MessageInitShape<typeof ListOperatorEventsRequestSchema> = {}) {
  return (await viewer.listOperatorEvents(filter)).events;
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown: ConnectError) => thrown,
  );
  return error?.findDetails(ErrorInfoSchema)[0]?.reason.toLowerCase() ?? "ok";
}

async function findings(): Promise<string[]> {
  return (await root.audit({})).findings.map(({ rule, detail }) => `${rule}: ${detail}`);
}

/** As an admin with this token makes a change, by the role that it had when the call was admitted. */
function callerOfOperator(id: string, token: string): string {
  const fingerprint = fingerprintOf(token);
  return callerOf({ ...TEST_ACTION, actor: { kind: "operator", id, name: "", role: "admin", fingerprint } });
}

const PERSON_ID = "usr_01kb12q4cse5fsbw0pdmm2h60v";
const LEAK = "https://paste.example/1";
const ids = { account: "", left: "", key: "", limit: "", webhook: "", charged: "", generation: "", other: "" };
const reason = "ticket 7 <b>";
const at = (time: string) => timestampFromDate(new Date(time));
const ofAccount = () => ({ accountId: ids.account, reason });
const ofKey = () => ({ keyId: ids.key });
const ofWebhook = () => ({ webhookId: ids.webhook });
const owner = () => ({ owner: { case: "keyId", value: ids.key } as const });
const toKey = () => ({ target: ids.key });
const toWebhook = () => ({ target: ids.webhook });
const toNoAccount = (target: unknown, more = {}) => ({ target, accountId: "", accountName: "", ...more });
const toOther = () => toNoAccount(ids.other, { targetName: "eve" });

/** A request without its reason, the details of its event, and what else the event has: by default, its target is the account. */
type Change = [request: () => object, details?: object, event?: () => object];

/** One call of each method that changes something. */
const changes: Readonly<Record<string, Change>> = {
  CreateAccount: [() => ({ name: "acme", plan: "pro" }), { plan: "pro" }],
  UpdateAccount: [
    () => ({ ...ofAccount(), email: "a@b.example", notes: "" }),
    { fields: "email,notes" },
    () => ({ targetName: "", accountName: "acme" }),
  ],
  CreateInvitation: [
    () => ({ ...ofAccount(), role: "owner" }),
    { role: "owner" },
    () => ({ target: expect.stringMatching(/^inv_/) }),
  ],
  CreateSignUpInvitation: [() => ({}), {}, () => toNoAccount(expect.stringMatching(/^sinv_/))],
  ViewCustomerPage: [ofAccount],
  RemoveMember: [() => ({ ...ofAccount(), personId: PERSON_ID }), {}, () => ({ target: PERSON_ID })],
  SuspendAccount: [ofAccount],
  ResumeAccount: [ofAccount],
  CloseAccount: [
    () => ({ accountId: ids.left, balance: "written_off" }),
    { balance: "written_off" },
    () => ({ target: ids.left, accountId: ids.left }),
  ],
  CreditAccount: [
    () => ({ ...ofAccount(), amountMicros: 25n, idempotencyKey: "1" }),
    { amount_micros: "25", entry_id: expect.stringMatching(/^led_/) },
  ],
  AdjustAccount: [
    () => ({ ...ofAccount(), amountMicros: -5n, idempotencyKey: "2" }),
    { amount_micros: "-5", entry_id: expect.stringMatching(/^led_/) },
  ],
  PutAutoTopUp: [() => ({ ...ofAccount(), enabled: false }), { enabled: "false" }],
  PutPlan: [() => ({ name: "tiny", rpm: 5, maxActiveKeys: 2 }), { rpm: "5", max_active_keys: "2" }, () => toNoAccount("tiny")],
  SetAccountPlan: [() => ({ ...ofAccount(), plan: "scale" }), { plan: "scale" }],
  CreateKey: [
    () => ({ ...ofAccount(), name: "ci", rateLimitRpm: 7, expiresAt: at("2100-01-02T03:04:05Z") }),
    { name: "ci", scopes: "generate,read", rate_limit_rpm: "7", expires_at: "2100-01-02T03:04:05.000Z" },
    toKey,
  ],
  RotateKey: [() => ({ ...ofKey(), overlapSeconds: 60 }), { overlap_seconds: "60" }, toKey],
  UpdateKey: [
    () => ({ ...ofKey(), name: "ci", scopes: ["read"], updateMask: { paths: ["name", "scopes", "expires_at"] } }),
    { name: "ci", scopes: "read", expires_at: "never" },
    toKey,
  ],
  SetLimit: [
    () => ({ ...owner(), limit: { metric: "cost", window: "day", amount: 5n } }),
    { metric: "cost", window: "day", amount: "5" },
    toKey,
  ],
  RemoveLimit: [() => ({ ...owner(), limitId: ids.limit }), {}, () => ({ target: ids.key, details: { limit_id: ids.limit } })],
  Rerate: [
    () => ({ model: "vx-sandbox-small", from: at("2026-01-01"), to: at("2100-01-01"), prices: { request: 1n }, apply: true }),
    { model: "vx-sandbox-small", from: "2026-01-01T00:00:00.000Z", to: "2100-01-01T00:00:00.000Z" },
    () => ({ target: ids.charged, accountId: ids.charged }),
  ],
  RefundEntry: [
    () => ({ accountId: ids.charged, entryId: ids.generation, idempotencyKey: "1" }),
    {},
    () => ({ target: ids.charged, accountId: ids.charged, details: { entry_id: ids.generation, amount_micros: "0" } }),
  ],
  SetAccountPrices: [
    () => ({ ...ofAccount(), change: { case: "discountBps", value: 1_500 } }),
    { change: "discountBps", discount_bps: "1500" },
  ],
  SetKeyLimit: [ofKey, { rate_limit_rpm: "default" }, toKey],
  ReportLeak: [
    () => ({ fingerprint: fingerprintOf(leaked.secret), keyStart: leaked.secret.slice(0, 14), url: LEAK }),
    { url: LEAK },
    () => ({ target: leaked.id }),
  ],
  CreateWebhook: [
    () => ({ ...ofAccount(), url: "https://10.0.0.1.example/?token=x", types: ["key.created"] }),
    { types: "key.created" },
    toWebhook,
  ],
  UpdateWebhook: [
    () => ({ ...ofWebhook(), state: "paused", updateMask: { paths: ["types", "state"] } }),
    { fields: "types,state", state: "paused" },
    toWebhook,
  ],
  RotateWebhook: [() => ({ ...ofWebhook(), overlapSeconds: 60 }), { overlap_seconds: "60" }, toWebhook],
  TestWebhook: [ofWebhook, {}, toWebhook],
  Redeliver: [() => ({ ...ofWebhook(), from: at("1970-01-01") }), { from: "1970-01-01T00:00:00.000Z" }, toWebhook],
  DeleteWebhook: [ofWebhook, {}, toWebhook],
  RevokeKey: [ofKey, {}, toKey],
  CreateOperator: [() => ({ name: "eve", role: "support" }), { name: "eve", role: "support" }, () => toNoAccount(ids.other)],
  SetOperatorRole: [() => ({ operatorId: ids.other, role: "finance" }), { role: "finance" }, toOther],
  RevokeOperator: [() => ({ operatorId: ids.other }), {}, toOther],
};

let leaked: TestKey;
/** What a call needs. */
const prepare: Readonly<Record<string, () => Promise<unknown>>> = {
  RemoveMember: () => app.database.owner`
    INSERT INTO vx.members (lane, account_id, person_id, email, role, joined_at, link_id)
    SELECT a.lane, a.id, ${PERSON_ID}, '', 'viewer', a.created_at, 'lnk_1' FROM vx.accounts a WHERE a.id = ${ids.account}`,
  CloseAccount: async () => (ids.left = await createTestAccount(root)),
  Rerate: async () => {
    const { secret, accountId: charged } = await createPaidKey(root);
    const body = { model: "vx-sandbox-small", messages: [{ role: "user", content: "Hello" }], max_tokens: 5 };
    const answer = await sendJson(app.url, { verb: "POST", path: "/v1/generate", secret, body });
    Object.assign(ids, { charged, generation: (answer.body as { id: string }).id });
  },
  ReportLeak: async () => (leaked = await createTestKey(root, { accountId: ids.account })),
};

/** Calls the method, and keeps the ids in its response. */
async function change(method: string, request: object): Promise<void> {
  const name = `${method.charAt(0).toLowerCase()}${method.slice(1)}` as "createKey";
  const answer: unknown = admin[name]({ ...request, reason } as never);
  if (method === "Rerate") for await (const _ of answer as AsyncIterable<unknown>);
  const { account, apiKey, limit, webhook, operator } = (await answer) as Record<string, { id: string } | undefined>;
  if (method === "CreateAccount") ids.account = account?.id ?? "";
  if (method === "CreateKey") ids.key = apiKey?.id ?? "";
  if (method === "SetLimit") ids.limit = limit?.id ?? "";
  if (method === "CreateWebhook") ids.webhook = webhook?.id ?? "";
  if (method === "CreateOperator") ids.other = operator?.id ?? "";
}

test("every method that changes something is tested here", () => {
  const changing = AdminService.methods.filter(
    ({ idempotency }) => idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
  );
  expect(Object.keys(changes).sort()).toEqual(changing.map(({ name }) => name).sort());
});

describe("a change", () => {
  test.each(Object.keys(changes))("by %s is logged with its operator and reason", async (method) => {
    const [request, details = {}, event] = changes[method] as Change;
    await prepare[method]?.();
    const before = (await events({ actorId: adminId })).length;
    await change(method, request());
    const logged = await events({ actorId: adminId });
    expect(logged).toHaveLength(before + 1);
    const byAdmin = { actorId: adminId, actorName: "ada", method, reason, outcome: "ok" };
    const own = { id: expect.stringMatching(/^evt_\d+_\d+$/), requestId: expect.stringMatching(/^req_/), ...byAdmin };
    const target = { target: ids.account, accountId: ids.account };
    expect(logged[0]).toMatchObject({ ...own, ...target, details, ...event?.() });
  });

  test("that repeats an earlier one without an effect is not logged again", async () => {
    const before = (await events({ pageSize: 1000 })).length;
    await admin.setOperatorRole({ operatorId: viewerId, role: "viewer" });
    await admin.creditAccount({ accountId: ids.account, amountMicros: 25n, reason, idempotencyKey: "1" });
    await admin.revokeKey({ keyId: ids.key });
    await admin.revokeOperator({ operatorId: ids.other });
    expect(await events({ pageSize: 1000 })).toHaveLength(before);
  });

  test("and its event are stored together or not at all", async () => {
    const { owner } = app.database;
    await owner`ALTER TABLE vx.operator_events ADD CONSTRAINT none CHECK (false) NOT VALID`;
    const before = await state();
    for (const call of [
      () => admin.createAccount({ name: "x" }),
      () => admin.creditAccount({ accountId: ids.account, amountMicros: 1n, reason, idempotencyKey: "9" }),
      () => admin.putPlan({ name: "tiny", rpm: 6, maxActiveKeys: 2 }),
      () => admin.setAccountPlan({ accountId: ids.account, plan: "free" }),
      () => admin.createKey({ accountId: ids.account, name: "x" }),
      () => admin.createOperator({ name: "x", role: "viewer" }),
      () => admin.revokeOperator({ operatorId: viewerId }),
      () => admin.setOperatorRole({ operatorId: viewerId, role: "support" }),
    ]) {
      expect(await reasonOf(call())).toBe("internal");
    }
    expect(await state()).toEqual(before);
    await owner`ALTER TABLE vx.operator_events DROP CONSTRAINT none`;
  });

  async function state() {
    return await app.database.owner`
      SELECT (SELECT count(*) FROM vx.accounts) AS accounts, (SELECT sum(balance_micros) FROM vx.accounts) AS balance,
        (SELECT string_agg(plan, ',' ORDER BY id) FROM vx.accounts) AS plans_of, (SELECT sum(rpm) FROM vx.plans) AS rpm,
        (SELECT count(*) FROM vx.keys) AS keys,
        (SELECT string_agg(role::text, ',' ORDER BY id) FROM vx.operators WHERE revoked_at IS NULL) AS operators,
        (SELECT count(*) FROM vx.operator_events) AS events`;
  }

  test("of an operator who was revoked after the authentication is refused", async () => {
    const { operator, secret } = await root.createOperator({ name: "gone", role: "admin" });
    await root.revokeOperator({ operatorId: operator?.id ?? "" });
    const act = callerOfOperator(operator?.id ?? "", secret);
    await expect(app.database.owner`SELECT vx.put_plan(${act}, 'late', 1, 1, NULL)`).rejects.toThrow("invalid_operator_token");
    expect((await root.listPlans({})).plans.map(({ name }) => name)).not.toContain("late");
  });

  test("of an operator who got another role after the authentication is refused", async () => {
    const { operator, secret } = await root.createOperator({ name: "lowered", role: "admin" });
    const operatorId = operator?.id ?? "";
    await root.setOperatorRole({ operatorId, role: "support" });
    const act = callerOfOperator(operatorId, secret);
    const { owner } = app.database;
    await expect(owner`SELECT vx.put_plan(${act}, 'late', 1, 1, NULL)`).rejects.toThrow("insufficient_role");
    // A call that began with the old role cannot restore it.
    await expect(owner`SELECT vx.set_operator_role(${act}, ${operatorId}, 'admin')`).rejects.toThrow("insufficient_role");
    expect((await root.listPlans({})).plans.map(({ name }) => name)).not.toContain("late");
  });
});

describe("a refused change", () => {
  const movement = (amountMicros: bigint) => ({ ...ofAccount(), amountMicros, idempotencyKey: String(amountMicros) });
  test.each<[string, () => Promise<unknown>, () => Partial<OperatorEvent>]>([
    [
      "insufficient_role",
      () => viewer.creditAccount(movement(1n)),
      () => ({ actorName: "vic", method: "CreditAccount", target: "" }),
    ],
    [
      "insufficient_balance",
      () => root.adjustAccount(movement(-500n)),
      () => ({ actorId: "break-glass", target: ids.account, accountId: ids.account, reason }),
    ],
    [
      "not_found",
      () => root.setKeyLimit({ keyId: "key_none" }),
      () => ({ method: "SetKeyLimit", target: "key_none", accountId: "" }),
    ],
    ["last_admin", () => root.revokeOperator({ operatorId: adminId }), () => ({ target: adminId })],
    [
      "last_admin",
      () => root.setOperatorRole({ operatorId: adminId, role: "finance" }),
      () => ({ target: adminId, details: { role: "finance" } }),
    ],
  ])("is logged with the outcome %s", async (outcome, call, event) => {
    expect(await reasonOf(call())).toBe(outcome);
    expect((await events({ pageSize: 1 }))[0]).toMatchObject({ outcome, ...event() });
  });

  test("is logged after 100 changes in the same minute", async () => {
    const act = callerOf({ ...TEST_ACTION, method: "Busy", actor: { ...SERVER, id: "op_busy" } });
    const { owner } = app.database;
    await owner.begin(async (sql) => {
      await sql`SET LOCAL search_path = vx`;
      await sql`
        SELECT append_operator_event(${act}::caller, 0::smallint, '', '', 'ok')
        FROM generate_series(1, 120)`;
    });
    await owner`SELECT vx.log_refusal(${act}, 0::smallint, '', 'not_found')`;
    const logged = await events({ actorId: "op_busy", pageSize: 1000 });
    expect(logged.filter(({ outcome }) => outcome === "not_found")).toHaveLength(1);
  });

  test("is logged at most 100 times a minute for one operator", async () => {
    const act = callerOf({ ...TEST_ACTION, actor: { ...SERVER, id: "op_noisy" } });
    await app.database.owner`SELECT vx.log_refusal(${act}, 0::smallint, '', 'not_found') FROM generate_series(1, 150)`;
    expect(await events({ actorId: "op_noisy", pageSize: 1000 })).toHaveLength(100);
    expect(await events({ method: TEST_ACTION.method, pageSize: 1000 })).toHaveLength(100);
  });
});

describe("the list", () => {
  test("is filtered by method, target, account and time, and paged", async () => {
    expect((await events({ method: "PutPlan" })).map(({ target }) => target)).toEqual(["tiny"]);
    expect((await events({ target: "tiny" })).map(({ method }) => method)).toEqual(["PutPlan"]);
    const ofAccount = await events({ accountId: ids.account });
    expect(ofAccount.map(({ target }) => target)).toContain(ids.key);
    expect(ofAccount.every(({ accountId }) => accountId === ids.account)).toBe(true);
    const all = await events({ pageSize: 1000 });
    const times = all.map(({ createdAt }) => (createdAt ? timestampDate(createdAt).getTime() : 0));
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const middle = timestampFromDate(new Date(times[Math.floor(times.length / 2)] ?? 0));
    const [newer, older] = [await events({ from: middle, pageSize: 1000 }), await events({ to: middle, pageSize: 1000 })];
    expect([...newer, ...older].map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    const paged: string[] = [];
    let pageToken = "";
    do {
      const page = await viewer.listOperatorEvents({ pageSize: 7, pageToken });
      paged.push(...page.events.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(paged).toEqual(all.map(({ id }) => id));
    expect(await reasonOf(viewer.listOperatorEvents({ pageToken: "x" }))).toBe("invalid_argument");
  });

  test("contains no secret of a key or an operator, and no fingerprint", async () => {
    const created = await root.createKey({ accountId: ids.account, name: "secret" });
    const operator = await root.createOperator({ name: "secret", role: "viewer" });
    // A token that is sent in the wrong header.
    await root.setKeyLimit({ keyId: created.apiKey?.id ?? "" }, { headers: { "x-request-id": operator.secret } });
    const text = (await events({ pageSize: 1000 })).map((event) => toJsonString(OperatorEventSchema, event)).join("");
    for (const secret of [created.secret, operator.secret]) {
      expect(text).not.toContain(secret.slice(8, -8));
      expect(text).not.toContain(fingerprintOf(secret));
    }
  });

  test("reads few pages of the disk, for each filter and far from the first page", async () => {
    const filters = ["'', '', '', ''", "'op_7', '', '', ''", "'', 'M7', '', ''", "'', '', 't7', ''", "'', '', '', 'a7'"];
    const reads: Awaited<ReturnType<typeof pagesRead>>[] = [];
    const undo = new Error("undo");
    const measured = app.database.owner.begin(async (sql) => {
      await sql`
        INSERT INTO vx.operator_events
        SELECT 9, 1000000 + i, timestamptz '2020-01-01' + i * interval '1 second', 'op_' || i % 50, 'n', 'M' || i % 50,
          't' || i % 50, 'a' || i % 50, '', 'ok', '{}', '', ''
        FROM generate_series(1, 20000) i`;
      const before = "NULL, NULL, 1577845800000000, 9::smallint, 1009000, 10";
      // The first call also reads the catalogs of PostgreSQL.
      await pagesRead(sql, `list_operator_events(${filters[0]}, ${before})`);
      for (const filter of filters) reads.push(await pagesRead(sql, `list_operator_events(${filter}, ${before})`));
      throw undo;
    });
    await expect(measured).rejects.toBe(undo);
    expect(reads.map(({ rows }) => rows)).toEqual(filters.map(() => 10));
    for (const [i, { pages }] of reads.entries()) expect(pages, filters[i]).toBeLessThan(30);
  });
});

describe("a refusal", () => {
  const rename = (from: string, to: string) =>
    app.database.owner.unsafe(`ALTER FUNCTION vx.${from}(vx.caller, smallint, text, text) RENAME TO ${to}`);

  test("is sent to the caller even if it cannot be logged; the log of the server says so", async () => {
    await rename("log_refusal", "no_log_refusal");
    try {
      expect(await reasonOf(viewer.revokeOperator({ operatorId: "op_none" }))).toBe("insufficient_role");
      expect(await reasonOf(admin.revokeOperator({ operatorId: "op_none" }))).toBe("not_found");
    } finally {
      await rename("no_log_refusal", "log_refusal");
    }
    const unlogged = app
      .logText()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg === "logging a refused change failed");
    expect(unlogged).toEqual(
      ["insufficient_role", "not_found"].map((outcome) =>
        expect.objectContaining({ level: "error", method: "RevokeOperator", target: expect.anything(), outcome }),
      ),
    );
  });

  test("cannot have the outcome of a change that was made", async () => {
    const forged = app.database.owner`SELECT vx.log_refusal(${TEST_CALLER}, 0::smallint, '', 'ok')`;
    await expect(forged).rejects.toThrow(/ok is the outcome of a change that was made/);
  });
});

describe("the audit", () => {
  test("finds no difference in the log, and counts its events", async () => {
    const audit = await root.audit({});
    expect(audit.findings).toEqual([]);
    expect(audit.operatorEvents).toBe(BigInt((await events({ pageSize: 1000 })).length));
  });

  test.each<[string, string, RegExp]>([
    [
      "a changed column",
      "UPDATE vx.operator_events SET reason = reason || 'x' WHERE lane = 1024 AND seq = 2",
      /^operator_log_unchanged: event 2 of lane 1024/,
    ],
    [
      "changed details",
      `UPDATE vx.operator_events SET details = '{"role": "viewer"}' WHERE lane = 1024 AND seq = 1`,
      /^operator_log_unchanged: event 1/,
    ],
    ["a deleted event", "DELETE FROM vx.operator_events WHERE lane = 1024 AND seq = 2", /^operator_log_unchanged: event 3/],
    [
      "deleted last events",
      "DELETE FROM vx.operator_events WHERE lane = 1024 AND seq > 3",
      /^operator_log_complete: the last event of lane 1024 is \d+, the log ends with 3$/,
    ],
    ["an empty log", "DELETE FROM vx.operator_events", /^operator_log_complete/],
    ...Object.entries({
      created_at: "created_at + interval '1 microsecond'",
      actor_id: "'op_other'",
      actor_name: "'other'",
      method: "'Other'",
      target: "target || 'x'",
      account_id: "'acct_other'",
      outcome: "'not_found'",
      request_id: "request_id || 'x'",
    }).map(([column, value]): [string, string, RegExp] => [
      `another ${column}`,
      `UPDATE vx.operator_events SET ${column} = ${value} WHERE lane = 1024 AND seq = 2`,
      /^operator_log_unchanged: event 2 of lane 1024/,
    ]),
  ])("finds %s", async (_what, sql, finding) => {
    const { owner } = app.database;
    await owner`CREATE TABLE saved AS SELECT * FROM vx.operator_events`;
    await owner.unsafe(sql);
    expect((await findings()).join("\n")).toMatch(finding);
    await owner`DELETE FROM vx.operator_events`;
    await owner`INSERT INTO vx.operator_events SELECT * FROM saved`;
    await owner`DROP TABLE saved`;
    expect(await findings()).toEqual([]);
  });
});
