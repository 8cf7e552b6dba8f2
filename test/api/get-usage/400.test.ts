import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { UsageService } from "../../../gen/vx/v1/usage_pb.js";
import { usageFiltersOf } from "../../../src/api/usage/request.ts";
import { readPage } from "../../../src/domain/page.ts";
import { sendJson } from "../../rest/send-json.ts";
import { useTestApp } from "../../support/app.ts";
import { useOperator, useTestKey } from "../../support/fixtures.ts";
import { callOf } from "../../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
const key = useTestKey(app);

const token = (text: string) => Buffer.from(text).toString("base64url");
/** The list of a page token: the usage with these filters. */
function listOf(filters: { from?: Timestamp; to?: Timestamp; groupBy?: string[] }): string {
  const fields = usageFiltersOf({ groupBy: [], tz: "", ...filters }, "");
  return readPage("usage", { pageSize: 0, pageToken: "" }, fields).list;
}
const ANY = listOf({});
const YEAR = "from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z";

test.each([
  { what: "a time off the quarter of an hour", query: "from=2026-01-01T00:10:00Z", field: "from" },
  { what: "a time off by a nanosecond", query: "to=2026-01-01T00:00:00.000000001Z", field: "to" },
  { what: "a time that is no time", query: "from=yesterday", field: "from" },
  { what: "a time before 2000", query: "from=1999-12-31T00:00:00Z", field: "from" },
  {
    what: "a range that ends before it starts",
    query: "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
    field: "from",
  },
  { what: "a year of hours", query: `${YEAR}&group_by=hour`, field: "from" },
  {
    what: "a hundred years of days",
    query: "from=2000-01-01T00:00:00Z&to=9999-01-01T00:00:00Z",
    field: "from",
  },
  { what: "an unknown group", query: "group_by=day,colour", field: "group_by" },
  { what: "the group of operators", query: "group_by=account", field: "group_by" },
  { what: "an empty group", query: "group_by=day,", field: "group_by" },
  { what: "two periods", query: "group_by=day,hour", field: "group_by" },
  {
    what: "five groups",
    query: "group_by=day&group_by=day&group_by=day&group_by=day&group_by=day",
    field: "group_by",
  },
  { what: "an unknown time zone", query: "tz=Mars/Olympus", field: "tz" },
  { what: "an offset in place of a time zone", query: "tz=%2B05:30", field: "tz" },
  { what: "a time zone with SQL in it", query: "tz=UTC'--", field: "tz" },
  { what: "a negative page_size", query: "page_size=-1", field: "page_size" },
  { what: "a token of the ledger", query: `page_token=${token("entries:1")}`, field: "page_token" },
  { what: "a token without a position", query: `page_token=${token(`${ANY}:`)}`, field: "page_token" },
  { what: "a token with too few parts", query: `page_token=${token(`${ANY}:1\0key`)}`, field: "page_token" },
  {
    what: "a token with too many parts",
    query: `page_token=${token(`${ANY}:1\0\0\0\0\0\0`)}`,
    field: "page_token",
  },
  {
    what: "a token whose start is no number",
    query: `page_token=${token(`${ANY}:-1\0\0\0\0`)}`,
    field: "page_token",
  },
  {
    what: "a token whose start is too large",
    query: `page_token=${token(`${ANY}:${"9".repeat(10)}\0\0\0\0\0`)}`,
    field: "page_token",
  },
  { what: "a token that is not base64url", query: "page_token=%2B%2B", field: "page_token" },
  { what: "a token of 2,049 characters", query: `page_token=${"M".repeat(2049)}`, field: "page_token" },
])("$what is a 400 that names $field", async ({ query, field }) => {
  const { status, body } = await sendJson(app.url, {
    verb: "GET",
    path: `/v1/usage?${query}`,
    secret: key.secret,
  });
  const { error } = body as { error: { code: string; param: string } };
  expect([status, error.code, error.param.split("[")[0]]).toEqual([400, "invalid_argument", field]);
});

test("a changed token only changes where the page starts", async () => {
  const list = listOf({
    from: timestampFromMs(Date.UTC(2026, 0)),
    to: timestampFromMs(Date.UTC(2027, 0)),
    groupBy: ["day", "user"],
  });
  const positions = ["0\0\0\0\0\0", "999999999\0a\0b\0c\0d\0e", `2000000\0"]}\0\\\0'\0\u{10ffff}\0`];
  for (const position of positions) {
    const path = `/v1/usage?${YEAR}&group_by=day,user&page_token=${token(`${list}:${position}`)}`;
    expect(await sendJson(app.url, { verb: "GET", path, secret: key.secret })).toMatchObject({
      status: 200,
      body: { rows: [] },
    });
  }
});

test("a token of other filters is a 400 that names page_token", async () => {
  const pageToken = token(`${ANY}:0\0\0\0\0\0`);
  for (const filter of ["", "group_by=day&", "group_by=key&", "tz=UTC&", "from=2026-01-01T00:00:00Z&"]) {
    const path = `/v1/usage?${filter}page_token=${pageToken}`;
    const { status, body } = await sendJson(app.url, { verb: "GET", path, secret: key.secret });
    const expected = filter === "" ? [200, undefined] : [400, "page_token"];
    expect([status, (body as { error?: { param: string } }).error?.param]).toEqual(expected);
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
