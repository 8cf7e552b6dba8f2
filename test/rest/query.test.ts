import { beforeAll, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { expectError, https, JSON_BODY, jsonOf } from "./answers.ts";

let key: TestKey;

const app = useTestApp();
beforeAll(async () => {
  const operator = operatorOf(app);
  key = await createTestKey(operator);
  await createTestKey(operator, { accountId: key.accountId });
});

/** Of both versions of HTTP; the forms of requests are read from either in the same way. */
const [{ send }] = https;
const get = (path: string) => send(app.url, { method: "GET", path, headers: bearer(key.secret) });

// ProtoJSON accepts integers in any JSON notation: 1e0 is an int32.
test.each([
  "page_size=1",
  "pageSize=1",
  "page%5Fsize=%31",
  "&page_size=1&",
  "page_size=1&page_token=",
  "page_size=1e0",
  "page_size=10E-1",
  "page_size=1.0",
])("?%s requests one key", async (query) => {
  expect(jsonOf(await get(`/v1/keys?${query}`)).api_keys).toHaveLength(1);
});

test("an empty query has no parameters", async () => {
  expect(jsonOf(await get("/v1/keys?")).api_keys).toHaveLength(2);
});

test.each([
  ["/v1/me?x=1", "x"],
  ["/v1/me?page_size=1", "page_size"],
  ["/v1/keys?limit=1", "limit"],
  ["/v1/keys?page_size=1&Page_Size=2", "Page_Size"],
  ["/v1/keys?page_size.x=1", "page_size.x"],
  ["/v1/keys?=1", ""],
  ["/v1/keys?__proto__=1", "__proto__"],
  ["/v1/keys?__proto__.page_size=1", "__proto__.page_size"],
  ["/v1/keys?constructor=1", "constructor"],
  ["/v1/keys?toString", "toString"],
  ["/v1/keys?%C3%A4=1", "ä"],
])("%s is rejected with the name of the unknown parameter", async (path, name) => {
  const { message } = expectError(await get(path), "invalid_argument", name === "" ? null : name);
  if (name !== "") expect(message).toContain(name);
});

test.each(["page_size=1&page_size=2", "page_size=1&pageSize=1", "page_token=a&page_token=a"])(
  "?%s gives a parameter twice",
  async (query) => {
    const last = query.split("&")[1]?.split("=")[0] ?? "";
    const { message } = expectError(await get(`/v1/keys?${query}`), "invalid_argument", last);
    expect(message).toMatch(/more than once/);
  },
);

test.each(["abc", "1.5", "", "1e99", "2147483648", "0x10", "NaN", "true", "1,2"])(
  "page_size=%s is no page size",
  async (value) => {
    expectError(await get(`/v1/keys?page_size=${value}`), "invalid_argument", "page_size");
  },
);

test("a field of the path is rejected in the query", async () => {
  expectError(await get(`/v1/keys/${key.id}?key_id=${key.id}`), "invalid_argument", "key_id");
});

test.each(["page_size=%", "page_size=%zz", "%ff=1", "page_token=%ed%a0%80"])("?%s is no text", async (query) => {
  expectError(await get(`/v1/keys?${query}`), "invalid_argument");
});

test("a path that reads its parameters from the body rejects them in the query", async () => {
  const headers = { ...JSON_BODY, ...bearer(key.secret) };
  const answer = await send(app.url, { path: "/v1/keys?name=x", headers, body: '{"name":"y"}' });
  expect(expectError(answer, "invalid_argument", "name").message).toMatch(/from the body/);
});

test("the error shortens a very long name", async () => {
  const { message } = expectError(await get(`/v1/keys?${"x".repeat(5_000)}=1`), "invalid_argument", `${"x".repeat(200)}…`);
  expect(message.length).toBeLessThan(400);
});

test("the first invalid one of very many parameters ends the parsing", async () => {
  expectError(await get(`/v1/keys?${"a&".repeat(5_000)}`), "invalid_argument", "a");
});
