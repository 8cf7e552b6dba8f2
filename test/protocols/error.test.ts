import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { type GenerateRequestSchema, GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { DomainError, ERRORS, type Reason } from "../../src/domain/errors.ts";
import { testFile } from "../rest/descriptors.ts";
import { mount } from "../rest/mount.ts";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { refuse } from "../support/fake-upstreams/behaviours.ts";
import type { TestKey } from "../support/fixtures.ts";
import { REQUEST, running, useMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { bad, detail, expectRefusals } from "./refusals.ts";
import { callEach, quickWires, rpcWires, useClients, type Wire, wires } from "./wires.ts";

const metered = useMetered();
const clients = useClients(wires, () => metered.app.url);
const operators = useClients(rpcWires, () => metered.app.adminUrl);
const { generate, streamGenerate } = GenerateService.method;

type Method = typeof generate | typeof streamGenerate;
type Request = Partial<MessageInitShape<typeof GenerateRequestSchema>>;
type Provoked = { readonly secret: string; readonly request?: Request; readonly end?: () => Promise<unknown> };

/** A key whose rights have changed. */
const changed = (change: (key: TestKey) => Promise<unknown>) => async (): Promise<Provoked> => {
  const key = await metered.payer(1_000n);
  await change(key);
  return key;
};
const updated = (fields: object, path: string) =>
  changed(({ id }) => metered.operator.updateKey({ keyId: id, ...fields, updateMask: { paths: [path] } }));
const asked = (request: Request) => async (): Promise<Provoked> => ({ ...(await metered.payer(1_000n)), request });

const revoked = changed(({ id }) => metered.operator.revokeKey({ keyId: id }));
const rotated = changed(({ id }) => metered.operator.rotateKey({ keyId: id }));
const suspended = changed(({ accountId }) => metered.operator.suspendAccount({ accountId, reason: "test" }));

/** Its idempotency key belongs to another request. */
const replayed = async (method: Method): Promise<Provoked> => {
  const { secret } = await metered.payer(1_000n);
  await first(method, secret, { maxTokens: 5 });
  return { secret };
};
/** The first call with its idempotency key runs until the end. */
const inProgress = async (method: Method): Promise<Provoked> => {
  const { secret } = await metered.payer(1_000n);
  const { end } = await running(metered, () => first(method, secret, {}));
  return { secret, end };
};
const first = (method: Method, secret: string, request: Request) => {
  const headers = { ...bearer(secret), "idempotency-key": "one" };
  return callEach(clients, () => ({ method, request: { ...REQUEST, ...request }, headers }), wires.slice(0, 1));
};

const root = async () => OPERATOR_TOKEN;
const viewer = async () => (await metered.operator.createOperator({ name: randomUUID().slice(0, 20), role: "viewer" })).secret;

const COST_TEXT = "is $0.00001, but the input and one token of output can cost $0.000011";
const LONG = [{ role: "user", content: "hi ".repeat(1_100) }];
const LONG_TEXT = 'have at least 1105 tokens, but the context window of "fake" has 1000 for messages and reply';
const BALANCE_TEXT = "This call can cost up to $0.000029, but the balance is $0.000005. Top up the account.";
const FUNDS = { balance_micros: "5", held_micros: "0", available_micros: "5" };
const AMOUNTS = { ...FUNDS, required_micros: "29", shortage_micros: "24" };
const NO_RETRY = { "x-should-retry": "false" };
const UNKNOWN_KEY = { ...NO_RETRY, "www-authenticate": "Bearer" };

type Row = [
  reason: Reason,
  code: string,
  provoke: (method: Method) => Promise<Provoked>,
  text: string | RegExp,
  headers: object,
  metadata?: object,
  ...details: object[],
];

// biome-ignore format: a row a line
const ROWS: Row[] = [
  ["missing_api_key", "UNAUTHENTICATED", async () => ({ secret: "" }), /^No API key was sent/, UNKNOWN_KEY],
  ["invalid_api_key", "UNAUTHENTICATED", async () => ({ secret: "vx_live_x" }), /not valid/, UNKNOWN_KEY],
  ["revoked_api_key", "UNAUTHENTICATED", revoked, /was revoked\. .* is vx_live_\w{4}…\w{4}\.$/, UNKNOWN_KEY],
  ["expired_api_key", "UNAUTHENTICATED", rotated, /has expired/, UNKNOWN_KEY],
  ["account_suspended", "PERMISSION_DENIED", suspended, /suspended/, NO_RETRY],
  ["insufficient_scope", "PERMISSION_DENIED", updated({ scopes: ["read"] }, "scopes"), /lacks the scope "generate"/, NO_RETRY, { scope: "generate" }],
  ["model_not_allowed", "PERMISSION_DENIED", updated({ models: ["cheap"] }, "models"), /cannot use the model "fake"/, NO_RETRY],
  ["address_not_allowed", "PERMISSION_DENIED", updated({ allowedCidrs: ["192.0.2.0/24"] }, "allowed_cidrs"), /127\.0\.0\.1/, NO_RETRY, { address: "127.0.0.1" }],
  ["model_not_found", "NOT_FOUND", asked({ model: "none" }), /no model "none"/, {}, {}, bad(["model", 'there is no model "none"'])],
  ["invalid_argument", "INVALID_ARGUMENT", asked({ stop: ["x", ""] }), /^stop\[1\]: /, {}, {}, bad(["stop[1]", expect.any(String)])],
  ["invalid_argument", "INVALID_ARGUMENT", asked({ maxTokens: 0, temperature: 3 }), /^max_tokens: /, {}, {}, bad(["max_tokens", "must be from 1 to 32000"], ["temperature", "must be from 0 to 2"])],
  ["max_cost_too_low", "INVALID_ARGUMENT", asked({ maxCostMicros: 10n }), `max_cost_micros: ${COST_TEXT}`, {}, { max_cost_micros: "10", required_micros: "11" }, bad(["max_cost_micros", COST_TEXT])],
  ["context_length_exceeded", "INVALID_ARGUMENT", asked({ messages: LONG }), `messages: ${LONG_TEXT}`, {}, { context_window: "1000", input_tokens: "1105" }, bad(["messages", LONG_TEXT])],
  ["insufficient_balance", "FAILED_PRECONDITION", () => metered.payer(5n), BALANCE_TEXT, NO_RETRY, AMOUNTS, detail("PreconditionFailure", { violations: [{ type: "BALANCE", subject: "account", description: BALANCE_TEXT }] })],
  ["idempotency_key_reused", "INVALID_ARGUMENT", replayed, /another request/, {}],
  ["idempotency_in_progress", "ABORTED", inProgress, /still running/, { "x-should-retry": "true", "retry-after": "1" }, {}, detail("RetryInfo", { retry_delay: "1s" })],
];

/** A stream that fails before its first message is the same for each code. */
const STREAMED = [...new Map(ROWS.map((row) => [row[1], row])).values()];

describe.each<[string, Method, Row[]]>([
  ["Generate", generate, ROWS],
  ["StreamGenerate", streamGenerate, STREAMED],
])("%s", (_, method, rows) => {
  test.each(rows)("%s", async (reason, code, provoke, text, headers, metadata, ...details) => {
    const { secret, request, end } = await provoke(method);
    const sent = secret === "" ? {} : { ...bearer(secret), "idempotency-key": "one" };
    const answers = await callEach(clients, () => ({ method, request: { ...REQUEST, ...request }, headers: sent }));
    await end?.();
    expectRefusals(wires, answers, { code, reason, text, headers, metadata, details });
  });

  test("a failed upstream", async () => {
    const { secret } = await metered.payer(1_000n);
    const answers = await callEach(clients, () => {
      metered.upstream.next(refuse(400));
      return { method, request: REQUEST, headers: bearer(secret) };
    });
    expectRefusals(wires, answers, { code: "UNAVAILABLE", reason: "upstream_error", text: /upstream/ });
  });
});

const { getAccount, createAccount } = AdminService.method;
const ROLES = { role: "viewer", required_role: "support" };

// biome-ignore format: a row a line
test.each<[Reason, string, typeof getAccount | typeof createAccount, () => Promise<string>, RegExp, object, object?, ...object[]]>([
  ["invalid_operator_token", "UNAUTHENTICATED", getAccount, async () => "", /operator token/, UNKNOWN_KEY],
  ["insufficient_role", "PERMISSION_DENIED", createAccount, viewer, /role/, NO_RETRY, ROLES],
  ["not_found", "NOT_FOUND", getAccount, root, /account/, {}],
  ["invalid_argument", "INVALID_ARGUMENT", createAccount, root, /^name: /, {}, {}, bad(["name", "must not be empty"])],
])("an operator: %s", async (reason, code, method, secretOf, text, headers, metadata, ...details) => {
  const secret = await secretOf();
  const answers = await callEach(operators, () => ({
    method,
    request: method === getAccount ? { accountId: "acc_none" } : {},
    headers: secret === "" ? {} : bearer(secret),
  }));
  expectRefusals(rpcWires, answers, { code, reason, text, headers, metadata, details });
});

const HTTP = { pattern: { case: "post", value: "/v1/say" }, body: "*" } as const;
const FILE = testFile(
  { Ask: ["string kind", "bool stream"], Reply: ["string text"] },
  {
    Say: { input: "Ask", output: "Reply", http: HTTP },
    StreamSay: { input: "Ask", output: "Reply", streams: true, http: HTTP, selectedBy: "stream" },
  },
);

const TEXT = "What happened: ä€\u{1f600} 100 %.";
const quota = (subject: string) =>
  detail("QuotaFailure", { violations: [expect.objectContaining({ subject, description: TEXT })] });
const BALANCE = detail("PreconditionFailure", { violations: [{ type: "BALANCE", subject: "account", description: TEXT }] });
const FURTHER: Partial<Record<Reason, object>> = {
  rate_limit_exceeded: quota("requests per minute"),
  key_limit_reached: quota("active keys"),
  webhook_limit_reached: quota("webhooks"),
  key_creation_limit_reached: quota("keys created per hour"),
  insufficient_balance: BALANCE,
  payment_reversed: BALANCE,
};

/** Compressed errors are tested above. */
const plainWires = wires.filter(({ name }) => !name.includes("gzip"));
describe("every reason of the table", () => {
  const fail = ({ kind }: { readonly kind: string }) => {
    if (kind === "bug") throw new Error("a secret");
    throw new DomainError(kind as Reason, {
      message: TEXT,
      fields: [{ field: "a.b[1]", description: "is \u2013 wrong" }],
      metadata: { amount_micros: "5" },
      retryAfterSeconds: 7,
    });
  };
  async function* streamSay(ask: { readonly kind: string }) {
    yield { text: "first" };
    fail(ask);
  }
  const mounted = started(() => mount(FILE, { methods: { say: fail, streamSay } }));
  const all = useClients(plainWires, () => mounted.url);
  const call = (name: string, kind: string, over: readonly Wire[]) =>
    callEach(all, () => ({ method: FILE.method(name), request: { kind } }), over);

  const REASONS = Object.keys(ERRORS) as Reason[];
  const firstOfStatus = new Map(REASONS.toReversed().map((reason) => [ERRORS[reason].status, reason]));

  test.each(REASONS)("%s", async (reason) => {
    const { code, status, shouldRetry } = ERRORS[reason];
    const over = firstOfStatus.get(status) === reason ? plainWires : quickWires;
    const further = [FURTHER[reason] ?? []].flat();
    const details = [bad(["a.b[1]", "is \u2013 wrong"]), detail("RetryInfo", { retry_delay: "7s" }), ...further];
    const refusal = { code, reason, text: TEXT, metadata: { amount_micros: "5" }, details };
    const headers = {
      "retry-after": "7",
      ...(status === 401 && { "www-authenticate": "Bearer" }),
      ...(shouldRetry !== undefined && { "x-should-retry": String(shouldRetry) }),
    };
    expectRefusals(over, await call("Say", reason, over), { ...refusal, headers });
    // The headers were sent before the error.
    expectRefusals(over, await call("StreamSay", reason, over), refusal, [{ text: "first" }]);
  });

  test("an error that is not expected is hidden", async () => {
    const refusal = { code: ERRORS.internal.code, reason: "internal", text: ERRORS.internal.message };
    expectRefusals(plainWires, await call("Say", "bug", plainWires), refusal);
    expectRefusals(plainWires, await call("StreamSay", "bug", plainWires), refusal, [{ text: "first" }]);
  });
});
