import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { UsageService } from "../../gen/vx/v1/usage_pb.js";
import { readPage } from "../../src/domain/page.ts";
import { usageFiltersOf } from "../../src/usage/request.ts";
import { sendAnyJson } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { useOperator, useTestKey } from "../support/fixtures.ts";
import { callOf } from "../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
const key = useTestKey(app);

const get = (query: string) => sendAnyJson(app.url, { verb: "GET", path: `/v1/usage?${query}`, secret: key.secret });
const token = (text: string) => Buffer.from(text).toString("base64url");
/** The list of a page token: the usage with these filters. */
function listOf(filters: { from?: Timestamp; to?: Timestamp; groupBy?: string[] }): string {
  const fields = usageFiltersOf({ groupBy: [], tz: "", ...filters }, "");
  return readPage("usage", { pageSize: 0, pageToken: "" }, fields).list;
}
const ANY = listOf({});
const YEAR = "from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z";

test.each([
  ["a time off the quarter of an hour", "from=2026-01-01T00:10:00Z", "from"],
  ["a time off by a nanosecond", "to=2026-01-01T00:00:00.000000001Z", "to"],
  ["a time that is no time", "from=yesterday", "from"],
  ["a time before 2000", "from=1999-12-31T00:00:00Z", "from"],
  ["a range that ends before it starts", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"],
  ["a year of hours", `${YEAR}&group_by=hour`, "from"],
  ["a hundred years of days", "from=2000-01-01T00:00:00Z&to=9999-01-01T00:00:00Z", "from"],
  ["an unknown group", "group_by=day,colour", "group_by"],
  ["the group of operators", "group_by=account", "group_by"],
  ["an empty group", "group_by=day,", "group_by"],
  ["two periods", "group_by=day,hour", "group_by"],
  ["five groups", "group_by=day&group_by=day&group_by=day&group_by=day&group_by=day", "group_by"],
  ["an unknown time zone", "tz=Mars/Olympus", "tz"],
  ["an offset in place of a time zone", "tz=%2B05:30", "tz"],
  ["a time zone with SQL in it", "tz=UTC'--", "tz"],
  ["a negative page_size", "page_size=-1", "page_size"],
  ["a token of 2,049 characters", `page_token=${"M".repeat(2049)}`, "page_token"],
])("%s is a 400: %s names %s", async (_, query, field) => {
  const { status, body } = await get(query);
  expect([status, body.error.code, body.error.param.split("[")[0]]).toEqual([400, "invalid_argument", field]);
});

test("a changed token only changes where the page starts", async () => {
  const [from, to] = [2026, 2027].map((year) => timestampFromMs(Date.UTC(year, 0))) as [Timestamp, Timestamp];
  const list = listOf({ from, to, groupBy: ["day", "user"] });
  const positions = ["0\0\0\0\0\0", "999999999\0a\0b\0c\0d\0e", `2000000\0"]}\0\\\0'\0\u{10ffff}\0`];
  for (const position of positions) {
    const query = `${YEAR}&group_by=day,user&page_token=${token(`${list}:${position}`)}`;
    expect(await get(query)).toMatchObject({ status: 200, body: { rows: [] } });
  }
});

test("a token of other filters is a 400 that names page_token", async () => {
  const pageToken = token(`${ANY}:0\0\0\0\0\0`);
  for (const filter of ["", "group_by=day&", "group_by=key&", "tz=UTC&", "from=2026-01-01T00:00:00Z&"]) {
    const { status, body } = await get(`${filter}page_token=${pageToken}`);
    expect([status, body.error?.param]).toEqual(filter === "" ? [200, undefined] : [400, "page_token"]);
  }
});

test("over Connect, the error names the field too", async () => {
  const request = { from: timestampFromMs(1), tz: "Europe/Berlin" };
  const outcome = await call(UsageService.method.getUsage, request, key.secret);
  expect(outcome).toMatchObject({ reason: "invalid_argument", fields: ["from"] });
});

test("operators get the same errors, and not_found for an unknown account", async () => {
  await expect(operator.getUsage({ tz: "Mars/Olympus" })).rejects.toThrow("tz: must be a time zone");
  await expect(operator.getUsage({ accountId: "acct_00000000000000000000000000" })).rejects.toThrow("There is no account");
});
