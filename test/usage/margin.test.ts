import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { beforeEach, expect, test } from "vitest";
import { startTestApp } from "../support/app.ts";
import { parseCsv } from "../support/csv.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";

/** A cost that no response has by chance. */
const CANARY = 7_654_321;

/** An upstream that refuses every request. */
const broken = started(async () => {
  const server = createServer((_, response) => response.writeHead(400).end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
});
let key: TestKey;

const sandbox = (cost: string) => `{kind: sandbox, cost: ${cost}}`;

const file = started(() => {
  const { port } = broken.address() as AddressInfo;
  const upstreams: Record<string, string[]> = {
    m: [sandbox("{input: 400000, output: 900000, tiers: [{above_input_tokens: 50, input: 5000000, output: 0}]}")],
    shared: [sandbox(`{input: 0, output: 0, request: ${CANARY}}`)],
    unknown: ["{kind: sandbox}"],
    failover: [
      `{kind: openai, base_url: "http://127.0.0.1:${port}/v1", model: x, cost: {input: 9000000, output: 9000000}}`,
      sandbox("{input: 100000, output: 100000}"),
    ],
  };
  const models = Object.entries(upstreams).map(
    ([id, list]) => `
  - id: ${id}
    context_window: 10000
    max_output_tokens: 50
    prices: {input: 1000000, output: 2000000}
    upstreams: [${list.join(", ")}]`,
  );
  return createModelsFile(`models:${models.join("")}\n`);
});
const app = started(() => startTestApp({ env: { VX_MODELS: file.path } }));
const operator = useOperator(app);
beforeEach(async () => {
  key = await createTestKey(operator);
  const { accountId } = key;
  await operator.creditAccount({ accountId, amountMicros: 1_000_000n, reason: "test", idempotencyKey: "1" });
});

async function generate(model: string, content = "[[tokens=2]] Hello", path = "/v1/generate"): Promise<string> {
  const body = JSON.stringify({ model, messages: [{ role: "user", content }], max_tokens: 2 });
  const headers = { ...bearer(key.secret), "content-type": "application/json", "anthropic-version": "2023-06-01" };
  return await textOf(path, { method: "POST", headers, body });
}

async function textOf(path: string, request: RequestInit): Promise<string> {
  const answer = await fetch(`${app.url}${path}`, request);
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, text]);
  return text;
}

async function lastEntry() {
  const { entries, costs } = await operator.listLedgerEntries({ accountId: key.accountId, pageSize: 1 });
  const [entry] = entries;
  if (!entry) throw new Error("the account has no entry");
  return { entry, cost: costs.find(({ entryId }) => entryId === entry.id) };
}

const rounded = (millionths: bigint) => (millionths + 999_999n) / 1_000_000n;

test("an entry has the upstream and the cost of its tokens there, for operators", async () => {
  await generate("m");
  const { entry, cost } = await lastEntry();
  const expected = rounded(entry.inputTokens * 400_000n + entry.outputTokens * 900_000n);
  const marginMicros = -entry.amountMicros - expected;
  expect(cost).toMatchObject({ upstream: "sandbox", upstreamCostMicros: expected, marginMicros });
  await generate("m", `[[tokens=2]]${" word".repeat(100)}`);
  const long = await lastEntry();
  expect(long.cost?.upstreamCostMicros).toBe(long.entry.inputTokens * 5n);
  const recent = await operator.listRecentEntries({ pageSize: 1 });
  expect(recent.entries[0]?.cost).toEqual(long.cost);
});

test("a credit has no upstream, and models that share one pay their own prices there", async () => {
  expect((await lastEntry()).cost).toBeUndefined();
  await generate("shared");
  expect((await lastEntry()).cost).toMatchObject({ upstream: "sandbox", upstreamCostMicros: BigInt(CANARY) });
});

test("without a cost, the cost is not known", async () => {
  await generate("unknown");
  const { cost } = await lastEntry();
  expect(cost).toMatchObject({ upstream: "sandbox" });
  expect([cost?.upstreamCostMicros, cost?.marginMicros]).toEqual([undefined, undefined]);
});

test("after a failover, the cost is that of the upstream that replied", async () => {
  await generate("failover");
  const { entry, cost } = await lastEntry();
  const tokens = entry.inputTokens + entry.outputTokens;
  expect(cost).toMatchObject({ upstream: "sandbox", upstreamCostMicros: rounded(tokens * 100_000n) });
});

/** The sums of the entries of the account, by model. */
async function sumsOfLedger() {
  const { entries, costs } = await operator.listLedgerEntries({ accountId: key.accountId, kind: "generation" });
  const sums = new Map<string, { revenue: bigint; cost: bigint; uncosted: bigint }>();
  for (const entry of entries) {
    const sum = sums.get(entry.model) ?? { revenue: 0n, cost: 0n, uncosted: 0n };
    const cost = costs.find(({ entryId }) => entryId === entry.id)?.upstreamCostMicros;
    sum.revenue -= entry.amountMicros;
    if (cost === undefined) sum.uncosted -= entry.amountMicros;
    else sum.cost += cost;
    sums.set(entry.model, sum);
  }
  return sums;
}

test("the usage adds up revenue, cost and margin, and the audit compares them with the ledger", async () => {
  for (const model of ["m", "m", "shared", "unknown"]) await generate(model);
  const { accountId } = key;
  const sums = await sumsOfLedger();
  for (const id of [accountId, ""]) {
    const { rows } = await operator.getUsage({ accountId: id, groupBy: ["account", "model", "upstream"] });
    const own = rows.filter((row) => row.accountId === accountId);
    expect(own.map(({ usage, upstream }) => [usage?.model, upstream])).toEqual([
      ["m", "sandbox"],
      ["shared", "sandbox"],
      ["unknown", "sandbox"],
    ]);
    for (const { usage, upstreamCostMicros, uncostedMicros, marginMicros } of own) {
      const { revenue = 0n, cost = 0n, uncosted = 0n } = sums.get(usage?.model ?? "") ?? {};
      expect([usage?.costMicros, upstreamCostMicros, uncostedMicros]).toEqual([revenue, cost, uncosted]);
      expect(marginMicros).toBe(revenue - uncosted - cost);
    }
  }
  const rules = async () => (await operator.audit({})).findings.map(({ rule }) => rule);
  expect(await rules()).toEqual([]);
  const { owner } = app.database;
  for (const column of ["upstream_cost_micros", "uncosted_micros"]) {
    const add = (micros: number) => owner`
      UPDATE vx.usage_quarters SET ${owner(column)} = ${owner(column)} + ${micros} WHERE account_id = ${accountId} AND model = 'm'`;
    await add(1);
    expect(await rules()).toEqual(["usage_equals_ledger"]);
    await add(-1);
  }
  await owner`UPDATE vx.ledger SET upstream_cost_micros = 1 WHERE account_id = ${accountId} AND model = 'unknown'`;
  expect(await rules()).toContain("ledger_unchanged");
});

async function exported(format: string, includeCosts: boolean): Promise<Record<string, string>[]> {
  let text = "";
  const range = { from: timestampFromDate(new Date("2020-01-01")), accountId: key.accountId };
  for await (const piece of operator.exportUsage({ ...range, format, includeCosts })) text += piece.text;
  return parseCsv(text).rows;
}

test("exports have upstreams and costs only if they are asked for", async () => {
  await generate("m");
  const { owner } = app.database;
  // The same sum at another upstream: without costs, a file does not show that there were two.
  await owner`
    INSERT INTO vx.usage_quarters SELECT (json_populate_record(u, '{"upstream": "zzz", "upstream_cost_micros": 5}')).*
    FROM vx.usage_quarters u WHERE account_id = ${key.accountId}`;
  const [{ cost_micros: charged = 0n, upstream_cost_micros: cost = 0n } = {}] = await owner<
    { cost_micros: bigint; upstream_cost_micros: bigint }[]
  >`SELECT cost_micros, upstream_cost_micros FROM vx.usage_quarters WHERE account_id = ${key.accountId} AND upstream <> 'zzz'`;
  const csv = await exported("csv", false);
  expect(csv).toMatchObject([{ model: "m", requests: "2", cost_micros: String(2n * BigInt(charged)) }]);
  expect(Object.keys(csv[0] ?? {}).filter((name) => /upstream|margin|uncosted/.test(name))).toEqual([]);
  expect(await exported("csv", true)).toMatchObject([
    { upstream: "sandbox", upstream_cost_micros: String(cost), margin_micros: String(BigInt(charged) - BigInt(cost)) },
    { upstream: "zzz", upstream_cost_micros: "5", margin_micros: String(BigInt(charged) - 5n) },
  ]);
  const focus = await exported("focus", false);
  expect(Object.keys(focus[0] ?? {}).filter((name) => name.includes("Upstream"))).toEqual([]);
  const costs = (await exported("focus", true)).map(({ x_UpstreamCost: one = "" }) => Math.round(Number(one) * 1e6));
  expect(costs.reduce((sum, one) => sum + one, 0)).toBe(Number(cost) + 5);
  expect((await exported("focus", true)).length).toBeGreaterThan(focus.length);
});

test("an export without costs has a sum for each version of the account's prices", async () => {
  await generate("m");
  await app.database.owner`
    INSERT INTO vx.usage_quarters SELECT (json_populate_record(u, '{"price_list_version": 7}')).*
    FROM vx.usage_quarters u WHERE account_id = ${key.accountId}`;
  expect(await exported("csv", false)).toMatchObject([
    { requests: "1", price_list_version: "0" },
    { requests: "1", price_list_version: "7" },
  ]);
});

test("no response to a customer has a cost or an upstream", async () => {
  const texts = [];
  for (const path of ["generate", "chat/completions", "messages", "generate:quote"])
    texts.push(await generate("shared", "Hello", `/v1/${path}`));
  expect((await lastEntry()).cost?.upstreamCostMicros).toBe(BigInt(CANARY));
  const read = (path: string, accept = "application/json") => textOf(path, { headers: { ...bearer(key.secret), accept } });
  const id = JSON.parse(await read("/v1/ledger")).entries[0].generation_id;
  const paths = ["ledger", "usage", "usage?group_by=day,key,model,user", "events", "models", "models/shared", "account", "me"];
  for (const path of [...paths, "keys", "limits", `generations/${id}`])
    for (const accept of ["application/json", "text/csv"]) texts.push(await read(`/v1/${path}`, accept));
  expect(texts).toHaveLength(4 + 2 * (paths.length + 3));
  for (const text of texts) expect(text).not.toMatch(/7654321|7\.654321|upstream|sandbox(?! models)|margin/i);
  const grouped = await fetch(`${app.url}/v1/usage?group_by=upstream`, { headers: bearer(key.secret) });
  expect(grouped.status).toBe(400);
});
