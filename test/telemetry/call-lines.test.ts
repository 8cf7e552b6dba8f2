import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { hangUpAfter, refuse, replyWhen, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { operatorOf, type TestKey } from "../support/fixtures.ts";
import type { Generator } from "../support/generators.ts";
import { openRest } from "../support/generators-rest.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SECRET_PROMPT = "the content of a prompt";
const REQUEST = { model: "fake", messages: [{ role: "user", content: SECRET_PROMPT }], maxTokens: 10 };
const USED = { input_tokens: 11, output_tokens: 4, cost_micros: 19 };

type Line = Readonly<Record<string, unknown>>;

let app: TestApp;
let first: FakeUpstream;
let second: FakeUpstream;
let models: ReturnType<typeof createModelsFile>;
let key: TestKey;
let seen = 0;

beforeAll(async () => {
  [first, second] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()]);
  const upstreams = [first, second].map(({ baseUrl }) => ({ kind: "openai", base_url: baseUrl, model: "m" }));
  models = createModelsFile(
    JSON.stringify({
      models: [
        {
          id: "fake",
          context_window: 1_000,
          max_output_tokens: 100,
          input_micros_per_million_tokens: 1_000_000,
          output_micros_per_million_tokens: 2_000_000,
          upstreams,
        },
      ],
    }),
  );
  app = await startTestApp({ env: { VX_MODELS: models.path } });
  key = await createPaidKey(operatorOf(app));
});
afterAll(async () => {
  await app.stop();
  await Promise.all([first.stop(), second.stop()]);
  models.remove();
});
beforeEach(() => {
  seen = lines().length;
});

const lines = (): Line[] =>
  app
    .logText()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);

/** The lines logged in this test, once they contain the call with the id. */
async function loggedBy(requestId: string): Promise<Line[]> {
  const mine = () =>
    lines()
      .slice(seen)
      .filter((line) => line.request_id === requestId);
  await expect.poll(() => mine().filter((line) => "rpc" in line)).toHaveLength(1);
  return mine();
}

const nameOf = (upstream: FakeUpstream) => `openai 127.0.0.1:${upstream.port}/v1 m`;

const optionsOf = (requestId: string, signal?: AbortSignal) => ({
  secret: key.secret,
  headers: { referer: key.secret, "x-request-id": requestId, traceparent: `00-${TRACE}-00f067aa0ba902b7-01` },
  ...(signal ? { signal } : {}),
});

const rest = (): Generator => openRest(app.url, "1.1");

test("the log line of a call contains its usage", async () => {
  const ids = ["unary", "stream"];
  await rest().generate(REQUEST, optionsOf("unary"));
  for await (const _ of rest().stream(REQUEST, optionsOf("stream")));
  for (const id of ids) {
    expect(await loggedBy(id)).toEqual([
      {
        level: "info",
        time: expect.any(String),
        request_id: id,
        trace_id: TRACE,
        rpc: expect.stringMatching(/^vx\.v1\.GenerateService\/(Stream)?Generate$/),
        protocol: "rest",
        code: "ok",
        status: 200,
        duration_ms: expect.any(Number),
        remote: expect.any(String),
        account_id: key.accountId,
        key_id: key.id,
        model: "fake",
        upstream: nameOf(first),
        generation_id: expect.stringMatching(/^gen_/),
        ...USED,
        msg: "call",
      },
    ]);
  }
});

test("a failover logs a line without a stack for each failed attempt, and names the upstream that replied", async () => {
  first.next(refuse(500), refuse(500), refuse(400));
  await rest().generate(REQUEST, optionsOf("failover"));
  const logged = await loggedBy("failover");
  const common = {
    level: "warn",
    request_id: "failover",
    trace_id: TRACE,
    account_id: key.accountId,
    model: "fake",
    upstream: nameOf(first),
  };
  expect(logged).toMatchObject([
    { ...common, attempt: 1, reason: "failed", detail: "the upstream responded with 500: some_error, refused with 500" },
    { ...common, attempt: 2, reason: "failed" },
    { ...common, attempt: 3, reason: "rejected" },
    { level: "info", code: "ok", upstream: nameOf(second), ...USED },
  ]);
  expect(JSON.stringify(logged)).not.toMatch(/"stack"|node:internal|\.ts:\d/);
});

test("upstreams get the trace of the caller", async () => {
  const sent = first.calls.length;
  const { headers, ...options } = optionsOf("traced");
  await rest().generate(REQUEST, { ...options, headers: { ...headers, tracestate: "a=1" } });
  await rest().generate(REQUEST, { ...options, headers: { "x-request-id": "untraced" } });
  expect(first.calls.slice(sent).map(({ headers: { traceparent, tracestate } }) => [traceparent, tracestate])).toEqual([
    [`00-${TRACE}-00f067aa0ba902b7-01`, "a=1"],
    [undefined, undefined],
  ]);
});

test("a change by an operator logs the operator and the amount", async () => {
  const operator = operatorOf(app);
  const { accountId } = key;
  await operator.creditAccount({ accountId, amountMicros: 5n, reason: "test", idempotencyKey: "logged" });
  const line = lines()
    .slice(seen)
    .find(({ rpc }) => rpc === "vx.admin.v1.AdminService/CreditAccount");
  expect(line).toMatchObject({ operator_id: "break-glass", target: accountId, amount_micros: 5, code: "ok" });
});

test("a call whose upstreams all fail costs nothing and has no stack", async () => {
  first.next(refuse(400));
  second.next(refuse(400));
  await expect(rest().generate(REQUEST, optionsOf("all-fail"))).rejects.toMatchObject({ reason: "upstream_error" });
  const logged = await loggedBy("all-fail");
  expect(logged).toHaveLength(3);
  expect(logged.at(-1)).toMatchObject({
    level: "warn",
    code: "unavailable",
    status: 502,
    reason: "upstream_error",
    detail: "the upstream responded with 400: some_error, refused with 400",
    model: "fake",
    upstream: nameOf(second),
    cost_micros: 0,
  });
  expect(JSON.stringify(logged)).not.toMatch(/"stack"|node:internal|\.ts:\d/);
});

async function chargedBy(requestId: string): Promise<number> {
  const [row] = await app.database.owner<{ amount: number }[]>`
    SELECT -amount_micros::int AS amount FROM vx.ledger WHERE request_id = ${requestId}`;
  return row?.amount ?? 0;
}

test("the log line of an interrupted stream contains the charge", async () => {
  first.next(hangUpAfter(2));
  const read = async () => {
    for await (const _ of rest().stream(REQUEST, optionsOf("broken")));
  };
  await expect(read()).rejects.toMatchObject({ reason: "upstream_error" });
  const line = (await loggedBy("broken")).at(-1);
  expect(line).toMatchObject({ reason: "upstream_error", status: 502, upstream: nameOf(first) });
  expect(line?.cost_micros).toBe(await chargedBy("broken"));
  expect(line?.cost_micros).toBeGreaterThan(0);
});

test("the log line of a disconnected call contains the charge", async () => {
  first.next(silentAfter(2));
  for await (const _ of rest().stream(REQUEST, optionsOf("left"))) break;
  const line = (await loggedBy("left")).at(-1);
  expect(line).toMatchObject({ code: "canceled", model: "fake", upstream: nameOf(first) });
  expect(line?.cost_micros).toBe(await chargedBy("left"));
  expect(line?.cost_micros).toBeGreaterThan(0);
});

test("the log line of a generation that continues without its caller is written when it is charged", async () => {
  const gate = Promise.withResolvers<void>();
  first.next(replyWhen(gate.promise, 2));
  const options = optionsOf("goes-on");
  const headers = { ...options.headers, "idempotency-key": "goes-on" };
  for await (const _ of rest().stream(REQUEST, { ...options, headers })) break;
  const metrics = async () => await (await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) })).text();
  await expect.poll(metrics).toMatch(/^vx_calls_total\{[^}]*code="canceled"\} 2$/m);
  gate.resolve();
  expect((await loggedBy("goes-on")).at(-1)).toMatchObject({ code: "canceled", ...USED });
});

test("an unknown model name is not logged", async () => {
  await expect(rest().generate({ ...REQUEST, model: "sent-by-the-caller" }, optionsOf("unknown"))).rejects.toThrow();
  expect(JSON.stringify(await loggedBy("unknown"))).not.toContain("sent-by-the-caller");
});

test("no log line contains content or keys", () => {
  expect(app.logText()).not.toContain(SECRET_PROMPT);
  expect(app.logText()).not.toContain("Hello, world");
  expect(app.logText()).not.toContain(key.secret);
});
