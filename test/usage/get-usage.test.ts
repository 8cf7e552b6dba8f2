import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, describe, expect, test } from "vitest";
import { type GetUsageRequestSchema, UsageService } from "../../gen/vx/v1/usage_pb.js";
import { QUARTER_MS } from "../../src/domain/periods.ts";
import { post, sendAnyJson } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer, callOf, messageOf } from "../support/protocols.ts";

const MODEL = "vx-sandbox-small";
const { getUsage } = UsageService.method;

let key: TestKey;

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
beforeEach(async () => {
  key = await createTestKey(operator);
});

const get = (query: string) => sendAnyJson(app.url, { verb: "GET", path: `/v1/usage?${query}`, secret: key.secret });

let moves = 0;
const credit = (amountMicros: bigint, reason = "x") =>
  operator.creditAccount({ accountId: key.accountId, amountMicros, reason, idempotencyKey: `${moves++}` });

async function generate(): Promise<Record<string, number>> {
  const body = { model: MODEL, messages: [{ role: "user", content: "[[reasoning=5]] hi" }], user: "ada" };
  return (await post(app, key, "/v1/generate", body)).json.usage;
}

/** A generation of one micro at each time, directly in the table. */
async function insertUsage(times: string[]) {
  await app.database.owner`
    INSERT INTO vx.usage_quarters
    SELECT vx.lane_of(${key.accountId}), ${key.accountId}, q, ${key.id}, ${MODEL}, '', 1, 1, 2, 3, 4, 5, 6, 0, 7, 1
    FROM unnest(${times.map((time) => Date.parse(time) / QUARTER_MS)}::int[]) q`;
}

type Row = { start: string; requests: number };
const rowsOf = async (query: string) => (await get(query)).body.rows.map(({ start, requests }: Row) => [start, requests]);

test("a charge is in the usage at once, with the sums of the replies and the number of the last entry", async () => {
  await credit(1_000_000n);
  const usages = [await generate(), await generate()];
  const sum = (name: string) => usages.reduce((total, usage) => total + (usage[name] ?? NaN), 0);
  const row = {
    start: expect.stringMatching(/T00:00:00Z$/),
    key_id: key.id,
    model: MODEL,
    user: "ada",
    requests: 2,
    input_tokens: sum("input_tokens"),
    cached_input_tokens: 0,
    output_tokens: sum("output_tokens"),
    reasoning_tokens: 10,
    cache_write_tokens: 0,
    image_tokens: 0,
    cost_micros: sum("cost_micros"),
  };
  const { body } = await get("group_by=day,key,model,user");
  expect(body).toMatchObject({ rows: [row], through_seq: 3, next_page_token: "" });
  expect(sum("reasoning_tokens")).toBe(10);
  const { accountId } = key;
  const { rows } = await operator.getUsage({ accountId, groupBy: ["month"] });
  expect(rows).toMatchObject([{ accountId, usage: { requests: 2n, costMicros: BigInt(row.cost_micros) } }]);
});

test("counts include their details, as in the ledger", async () => {
  await insertUsage(["2026-05-01T00:00Z"]);
  const { body } = await get("from=2026-05-01T00:00:00Z&to=2026-05-02T00:00:00Z");
  const input = { input_tokens: 9, cached_input_tokens: 3, cache_write_tokens: 4 };
  const output = { output_tokens: 11, reasoning_tokens: 6, image_tokens: 7 };
  expect(body.rows).toMatchObject([{ ...input, ...output, cost_micros: 1, cost: "$0.000001" }]);
});

describe("days", () => {
  test.each([
    // The clocks of Berlin go back on 25 October: this day has 25 hours.
    ["Europe/Berlin", ["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"], [3, 2]],
    ["UTC", ["2026-10-24T22:00:00Z", "2026-10-25T00:00:00Z"], [1, 4]],
    ["America/New_York", ["2026-10-24T22:00:00Z", "2026-10-25T04:00:00Z"], [2, 3]],
    ["Asia/Kolkata", ["2026-10-24T22:00:00Z", "2026-10-25T18:30:00Z"], [2, 3]],
    ["Asia/Kathmandu", ["2026-10-24T22:00:00Z", "2026-10-25T18:15:00Z"], [2, 3]],
  ])("are those of %s, even when its clocks change", async (tz, starts, requests) => {
    await insertUsage(["2026-10-24T23:00Z", "2026-10-25T00:45Z", "2026-10-25T22:45Z", "2026-10-25T23:00Z", "2026-10-25T23:45Z"]);
    const query = `from=2026-10-24T22:00:00Z&to=2026-10-26T00:00:00Z&tz=${tz}`;
    expect(await rowsOf(query)).toEqual(starts.map((start, i) => [start, requests[i]]));
  });
});

test("hours, months and the whole range are added up too; times may have any offset", async () => {
  await insertUsage(["2026-01-31T18:15Z", "2026-01-31T18:30Z", "2026-01-31T19:15Z", "2026-02-28T18:15Z"]);
  const range = "from=2026-01-31T23:45:00%2B05:45&to=2026-03-01T00:00:00Z&tz=Asia/Kathmandu";
  expect(await rowsOf(`${range}&group_by=hour`)).toEqual([
    ["2026-01-31T18:15:00Z", 2],
    ["2026-01-31T19:15:00Z", 1],
    ["2026-02-28T18:15:00Z", 1],
  ]);
  expect(await rowsOf(`${range}&group_by=month`)).toEqual([
    ["2026-01-31T18:15:00Z", 3],
    ["2026-02-28T18:15:00Z", 1],
  ]);
  expect(await rowsOf(`${range}&group_by=model&group_by=key`)).toEqual([["2026-01-31T18:00:00Z", 4]]);
});

test("an empty range has no rows, but the number of the last entry", async () => {
  await credit(1n);
  const at = "2026-01-01T00:00:00Z";
  expect((await get(`from=${at}&to=${at}`)).body).toEqual({ rows: [], through_seq: 1, next_page_token: "" });
});

test("the usage of other accounts is not returned", async () => {
  await insertUsage(["2026-05-01T00:00Z"]);
  key = await createTestKey(operator);
  expect(await rowsOf("from=2026-05-01T00:00:00Z")).toEqual([]);
});

test("pages continue", async () => {
  await insertUsage(["2026-05-01T00:00Z", "2026-05-02T00:00Z", "2026-05-03T00:00Z"]);
  const [from, to] = ["2026-05", "2026-06"].map((month) => timestampFromMs(Date.parse(month)));
  const request = { from, to, groupBy: ["day", "key"], pageSize: 2 } as MessageInitShape<typeof GetUsageRequestSchema>;
  const first = messageOf(await call(getUsage, request, key.secret));
  const second = messageOf(await call(getUsage, { ...request, pageToken: first.nextPageToken }, key.secret));
  const days = [first, second].map(({ rows }) => rows.map(({ start }) => start && new Date(timestampMs(start)).getUTCDate()));
  expect([...days, second.nextPageToken]).toEqual([[1, 2], [3], ""]);
});

describe("CSV", () => {
  const getCsv = (path: string, accept: string) => fetch(`${app.url}${path}`, { headers: { ...bearer(key.secret), accept } });

  test("has the same rows as JSON; the other fields are headers", async () => {
    await insertUsage(["2026-05-01T00:00Z", "2026-05-02T00:00Z"]);
    const response = await getCsv("/v1/usage?from=2026-05-01T00:00:00Z&group_by=day,key&page_size=1", "text/csv");
    const { headers } = response;
    expect(headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect([headers.get("x-through-seq"), headers.get("vary")]).toEqual(["0", "accept"]);
    expect(headers.get("x-next-page-token")).toMatch(/^[\w-]+$/);
    expect(await response.text()).toBe(
      "start,key_id,model,user,requests,input_tokens,cached_input_tokens,output_tokens,reasoning_tokens," +
        "cache_write_tokens,image_tokens,cost_micros,cost\r\n" +
        `2026-05-01T00:00:00Z,${key.id},,,1,9,3,11,6,4,7,1,$0.000001\r\n`,
    );
  });

  test("of the ledger quotes texts, keeps amounts, and marks texts that a spreadsheet would evaluate", async () => {
    const reasons = ['=HYPERLINK("https://x")', "+1+1", "a, b", "-5"];
    for (const reason of reasons) await credit(5n, reason);
    await operator.adjustAccount({ accountId: key.accountId, amountMicros: -1n, reason: "x", idempotencyKey: "x" });
    const text = await (await getCsv("/v1/ledger", "text/csv, application/json")).text();
    const [header = "", adjustment = "", ...credits] = text.split("\r\n");
    expect(header).toContain("created_at,generation_id,user,trace_id,price_version,prices_input,prices_cached_input");
    expect(adjustment).toContain(",adjustment,-1,-$0.000001,");
    const found = credits.map((line) => line.split(/,\$0\.0000\d+,/)[2]?.split(",,,")[0]);
    expect(found).toEqual(["-5", '"a, b"', "'+1+1", `"'=HYPERLINK(""https://x"")"`, undefined]);
  });

  test.each(["application/json, text/csv", "*/*", "text/*", "text/csv;q=0", ""])("is not sent for Accept: %s", async (accept) => {
    const response = await getCsv("/v1/usage", accept);
    expect(response.headers.get("content-type")).toBe("application/json");
  });
});
