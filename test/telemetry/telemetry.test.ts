import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { entryIdOf } from "../../src/domain/ids.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { refuse } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { operatorOf, type TestKey } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { createPaidKey } from "../support/openai.ts";
import { OtlpReceiver, type ReceivedSpan } from "../support/otlp-receiver.ts";
import { bearer } from "../support/protocols.ts";

const CANARY = "canary-of-the-content";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = "00f067aa0ba902b7";

const receiver = new OtlpReceiver();
let first: FakeUpstream;
let second: FakeUpstream;
let models: ReturnType<typeof createModelsFile>;
let app: TestApp;
let key: TestKey;

beforeAll(async () => {
  const endpoint = await receiver.start();
  [first, second] = await Promise.all([FakeUpstream.start(), FakeUpstream.start()]);
  const model = (id: string, upstreams: object[]) => ({
    id,
    context_window: 1_000,
    max_output_tokens: 100,
    input_micros_per_million_tokens: 1_000_000,
    output_micros_per_million_tokens: 2_000_000,
    upstreams,
  });
  const upstreams = [first, second].map(({ baseUrl }) => ({ kind: "openai", base_url: baseUrl, model: "m" }));
  models = createModelsFile(JSON.stringify({ models: [model("fake", upstreams)] }));
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=tests",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=tests",
    OTEL_SEMCONV_STABILITY_OPT_IN: "gen_ai/dup",
    // Short, so that tests need not wait: they wait for what is received.
    OTEL_BSP_SCHEDULE_DELAY: "10",
    OTEL_METRIC_EXPORT_INTERVAL: "100",
  };
  // The exporters read their variables themselves.
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  app = await startTestApp({ env: { ...env, VX_MODELS: models.path } });
  key = await createPaidKey(operatorOf(app));
});
afterAll(async () => {
  await app.stop();
  await Promise.all([first.stop(), second.stop(), receiver.stop()]);
  models.remove();
  vi.unstubAllEnvs();
});

async function generate(headers: Record<string, string> = {}, body: object = {}) {
  const request = {
    model: "fake",
    messages: [{ role: "user", content: CANARY }],
    max_tokens: 10,
    stop: [`stop-${CANARY}`],
    user: `user-${CANARY}`,
    ...body,
  };
  const response = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json", ...headers },
    body: JSON.stringify(request),
  });
  return { status: response.status, body: (await response.json()) as { id: string } };
}

/** The spans of a trace, once the span of the call has been received. It is the last one. */
async function spansOf(requestId: string): Promise<{ call: ReceivedSpan; children: ReceivedSpan[] }> {
  const find = () => receiver.spans.find(({ attributes }) => attributes["vx.request_id"] === requestId);
  await expect.poll(find).toBeDefined();
  const call = find() as ReceivedSpan;
  return { call, children: receiver.spans.filter(({ parentSpanId }) => parentSpanId === call.spanId) };
}

const lineOf = (requestId: string) =>
  app
    .logText()
    .split("\n")
    .filter((line) => line.includes(`"${requestId}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find(({ rpc }) => rpc !== undefined);

test("a call has a server span that continues the caller's trace, and spans for its stages and its attempt", async () => {
  const sent = first.calls.length;
  const { body } = await generate({ "x-request-id": "whole", traceparent: `00-${TRACE}-${CALLER}-01`, tracestate: "other=1" });
  const { call, children } = await spansOf("whole");
  expect(call).toMatchObject({
    name: "POST /v1/generate",
    kind: 2,
    traceId: TRACE,
    parentSpanId: CALLER,
    isError: false,
    attributes: {
      "http.request.method": "POST",
      "http.route": "/v1/generate",
      "http.response.status_code": 200,
      "vx.account_id": key.accountId,
      "vx.key_id": key.id,
      "vx.model": "fake",
      "vx.generation_id": body.id,
      "vx.ledger_entry_id": entryIdOf(body.id),
      "vx.input_tokens": 11,
      "vx.output_tokens": 4,
      "vx.cost_micros": 19,
    },
    resource: { "service.name": "vx", "deployment.environment.name": "tests" },
  });
  expect(children.map(({ name, kind, traceId }) => [name, kind, traceId])).toEqual([
    ["gate", 1, TRACE],
    ["hold", 1, TRACE],
    ["chat m", 3, TRACE],
    ["settlement", 1, TRACE],
  ]);
  for (const span of [call, ...children]) expect(span.nanos).toBeGreaterThan(0);
  const [gate, , attempt] = children as [ReceivedSpan, ReceivedSpan, ReceivedSpan];
  expect(receiver.spans.filter(({ parentSpanId }) => parentSpanId === gate.spanId)).toMatchObject([
    { name: "admission", kind: 1, traceId: TRACE },
  ]);
  expect(attempt.attributes).toEqual({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.system": "openai",
    "gen_ai.request.model": "m",
    "gen_ai.request.max_tokens": 10,
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.response.time_to_first_chunk": expect.any(Number),
    "gen_ai.usage.input_tokens": 11,
    "gen_ai.usage.output_tokens": 4,
    "server.address": "127.0.0.1",
    "server.port": first.port,
    "vx.upstream.attempt": 1,
  });
  expect(first.calls[sent]?.headers).toMatchObject({ traceparent: `00-${TRACE}-${attempt.spanId}-01`, tracestate: "other=1" });
  expect(lineOf("whole")).toMatchObject({ trace_id: TRACE, span_id: call.spanId });
  expect(receiver.headers[0]).toMatchObject({ "x-tenant": "tests" });
});

test("a call without a trace starts one, which is in its ledger entry and its log line", async () => {
  const { body } = await generate({ "x-request-id": "root" });
  const { call } = await spansOf("root");
  expect(call.parentSpanId).toBe("");
  const [row] = await app.database.owner`SELECT trace_id FROM vx.ledger WHERE id = ${entryIdOf(body.id)}`;
  expect(row).toEqual({ trace_id: call.traceId });
  expect(lineOf("root")).toMatchObject({ trace_id: call.traceId });
});

test("each failed attempt has a span with its error, also in the log", async () => {
  first.next(refuse(500), refuse(400));
  await generate({ "x-request-id": "failover" });
  const { call, children } = await spansOf("failover");
  const attempts = children.filter(({ kind }) => kind === 3);
  expect(attempts.map(({ attributes, isError }) => [attributes["error.type"], isError])).toEqual([
    ["failed", true],
    ["rejected", true],
    [undefined, false],
  ]);
  expect(attempts.map(({ attributes }) => attributes["server.port"])).toEqual([first.port, first.port, second.port]);
  expect(call.isError).toBe(false);
});

test("refused calls name their reason, and only failures of the server are errors", async () => {
  expect((await generate({ "x-request-id": "forged", authorization: "Bearer wrong" })).status).toBe(401);
  first.next(refuse(400));
  second.next(refuse(400));
  expect((await generate({ "x-request-id": "all-fail" })).status).toBe(502);
  const forged = await spansOf("forged");
  expect(forged.call).toMatchObject({ isError: false, attributes: { "error.type": "invalid_api_key" } });
  expect(forged.children).toMatchObject([{ name: "gate", isError: false, attributes: { "error.type": "invalid_api_key" } }]);
  const failed = await spansOf("all-fail");
  expect(failed.call).toMatchObject({
    isError: true,
    attributes: { "error.type": "upstream_error", "http.response.status_code": 502 },
  });
});

test("a trace that the caller does not sample is continued and not exported", async () => {
  const sent = first.calls.length;
  await generate({ "x-request-id": "unsampled", traceparent: `00-${TRACE.replace("4", "5")}-${CALLER}-00` });
  await generate({ "x-request-id": "after" });
  await spansOf("after");
  expect(receiver.spans.map(({ attributes }) => attributes["vx.request_id"])).not.toContain("unsampled");
  expect(first.calls[sent]?.headers.traceparent).toMatch(
    new RegExp(`^00-${TRACE.replace("4", "5")}-(?!${CALLER})[0-9a-f]{16}-00$`),
  );
});

test("RPCs have spans by the conventions for RPC", async () => {
  await fetch(`${app.url}/vx.v1.MeService/GetMe`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json", "x-request-id": "rpc" },
    body: "{}",
  });
  expect((await spansOf("rpc")).call).toMatchObject({
    name: "vx.v1.MeService/GetMe",
    attributes: { "rpc.system.name": "connectrpc", "rpc.method": "vx.v1.MeService/GetMe", "rpc.response.status_code": "OK" },
  });
});

test("the metrics of the GenAI conventions are exported, with the old names if requested", async () => {
  const count = (name: string) =>
    receiver.metrics.get(name)?.points.find(({ attributes }) => attributes["error.type"] === undefined);
  await expect.poll(() => count("gen_ai.client.inference.usage.output_tokens")?.value).toBeGreaterThan(0);
  const attributes = { "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m" };
  for (const name of [
    "gen_ai.client.inference.duration",
    "gen_ai.client.inference.time_to_first_chunk",
    "gen_ai.client.operation.duration",
    "gen_ai.client.token.usage",
  ])
    expect(count(name)).toMatchObject({ count: expect.any(Number), attributes });
  expect(count("gen_ai.client.inference.usage.input_tokens")).toMatchObject({ attributes });
  expect(receiver.metrics.get("gen_ai.client.inference.duration")?.unit).toBe("s");
});

test("neither content nor keys nor addresses of callers are exported", async () => {
  await generate({ "x-request-id": "unknown-path" }, { model: CANARY });
  await fetch(`${app.url}/v1/${CANARY}?${CANARY}`, {
    headers: { ...bearer(key.secret), tracestate: `a=${key.secret}` },
  });
  await spansOf("unknown-path");
  expect(receiver.text).not.toContain(CANARY);
  expect(receiver.text).not.toContain("Hello, world");
  expect(receiver.text).not.toContain(key.secret);
  expect(receiver.text).not.toContain("vx_live_");
  expect(receiver.text).not.toMatch(/client\.address/);
});
