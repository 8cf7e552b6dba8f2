import { readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ConsoleService } from "../../gen/vx/admin/v1/console_pb.js";
import { OPERATOR_TOKEN, useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";

const MODEL = "vx-sandbox-small";

const app = useTestApp();
const key = usePaidKey(app);

type Sample = { readonly labels: string; readonly value: number };

async function readMetrics() {
  const response = await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
  const text = await response.text();
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
  const samples = (name: string): Sample[] =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, "gm"))].map(([, labels = "", value]) => ({
      labels,
      value: Number(value),
    }));
  const valueAt = (name: string, labels = "") => samples(name).find((sample) => sample.labels === labels)?.value;
  return { text, types, samples, valueAt };
}

async function generate(model: string, headers: Record<string, string> = bearer(key.secret)) {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 20 });
  const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
  const response = await fetch(`${app.url}/v1/generate`, init);
  return { status: response.status, body: (await response.json()) as { usage?: Record<string, number> } };
}

test("docs/metrics.md lists exactly the metrics of the server, with their types and labels", async () => {
  await generate(MODEL);
  await operatorOf(app).audit({});
  const { types, samples } = await readMetrics();
  const rows = readFileSync("docs/metrics.md", "utf8").matchAll(/^\| `(vx_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|/gm);
  const documented = [...rows].map(([, name = "", labels = "", type]) => ({ name, labels, type }));
  const own = [...types].filter(([name]) => name?.startsWith("vx_"));
  expect(documented.map(({ name, type }) => [name, type]).sort()).toEqual(own.sort());
  for (const { name, labels, type } of documented) {
    const [sample] = samples(type === "histogram" ? `${name}_count` : name);
    const names = [...(sample?.labels ?? labels).matchAll(/(\w+)=/g)].map(([, label]) => label);
    if (sample) expect([name, names.join(",")]).toEqual([name, labels]);
  }
});

test("names follow the rules of Prometheus", async () => {
  const { types } = await readMetrics();
  for (const [name = "", type] of types) {
    expect(name).toMatch(/^(vx|process|nodejs)_[a-z0-9_]+$/);
    if (type === "counter") expect(name).toMatch(/_total$/);
    else expect(name).not.toMatch(/_(total|count|sum|bucket)$/);
    expect(name).not.toMatch(/_(ms|millis|milliseconds|kb|mb|minutes)(_|$)/);
  }
});

test("calls, tokens, cost and speed are counted by model", async () => {
  const before = await readMetrics();
  const { body } = await generate(MODEL);
  const after = await readMetrics();
  const added = (name: string, labels: string) => (after.valueAt(name, labels) ?? 0) - (before.valueAt(name, labels) ?? 0);
  const model = `model="${MODEL}"`;
  expect(added("vx_model_calls_total", `${model},code="ok"`)).toBe(1);
  expect(added("vx_tokens_total", `${model},kind="input"`)).toBe(body.usage?.input_tokens);
  expect(added("vx_tokens_total", `${model},kind="output"`)).toBe(body.usage?.output_tokens);
  expect(added("vx_charged_micros_total", model)).toBe(body.usage?.cost_micros);
  expect(added("vx_time_to_first_token_seconds_count", model)).toBe(1);
  expect(added("vx_output_tokens_per_second_count", model)).toBe(1);
  expect(added("vx_upstream_attempt_seconds_count", 'upstream="sandbox"')).toBe(1);
});

test("a reply without pieces has no first token", async () => {
  const embed = async () => {
    const body = JSON.stringify({ model: "vx-sandbox-embed", input: "Hello" });
    const headers = { ...bearer(key.secret), "content-type": "application/json" };
    return await fetch(`${app.url}/v1/embeddings`, { method: "POST", headers, body });
  };
  const before = await readMetrics();
  expect((await embed()).status).toBe(200);
  const after = await readMetrics();
  const model = 'model="vx-sandbox-embed"';
  const counted = (of: typeof before) => of.valueAt("vx_model_calls_total", `${model},code="ok"`) ?? 0;
  expect(counted(after) - counted(before)).toBe(1);
  expect(after.valueAt("vx_time_to_first_token_seconds_count", model)).toBe(
    before.valueAt("vx_time_to_first_token_seconds_count", model),
  );
});

test("names chosen by callers never become labels", async () => {
  const unpaid = await createTestKey(operatorOf(app));
  const before = await readMetrics();
  for (let i = 0; i < 20; i++) {
    const hostile = `hostile-${i}`;
    expect((await generate(hostile)).status).toBe(404);
    expect((await generate(hostile, { ...bearer(unpaid.secret), "x-request-id": hostile })).status).toBe(404);
    await fetch(`${app.url}/v1/${hostile}?${hostile}`, { headers: bearer(key.secret) });
    await fetch(`${app.url}/vx.v1.MeService/${hostile}`, { method: "POST" });
  }
  const { text } = await readMetrics();
  expect(text).not.toContain("hostile");
  const series = (of: string) => of.split("\n").filter((line) => line.startsWith("vx_")).length;
  // A failure has a series of its own for each reason.
  expect(series(text) - series(before.text)).toBeLessThan(40);
});

test("the findings of an audit are a metric, also of one in the console, and so is the build", async () => {
  const transport = createConnectTransport({ baseUrl: app.adminUrl, httpVersion: "2" });
  const client = createClient(ConsoleService, transport);
  const audits = async () => (await readMetrics()).samples("vx_audits_total").reduce((sum, { value }) => sum + value, 0);
  const before = await audits();
  for await (const _ of client.watchAudit({}, { headers: bearer(OPERATOR_TOKEN) }));
  const { findings } = await operatorOf(app).audit({});
  const { valueAt, samples } = await readMetrics();
  expect((await audits()) - before).toBe(2);
  expect(valueAt("vx_audit_findings")).toBe(findings.length);
  expect(samples("vx_build_info")).toEqual([
    { labels: expect.stringContaining(`node_version="${process.versions.node}"`), value: 1 },
  ]);
});
