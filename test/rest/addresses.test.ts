import { describe, expect, test } from "vitest";
import { surfaceOf } from "../../src/rules/policy.ts";
import { httpBindings } from "../../src/server/rest/http-rule.ts";
import { developerMethods } from "../support/any-method.ts";
import { expectNoFailures, useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { talk } from "../support/tcp.ts";
import { checkEnvelope, expectAnthropicError, expectError, https, JSON_BODY } from "./answers.ts";

const app = useTestApp();
const key = useTestKey(app);
expectNoFailures(app);

const call = (method: string, path: string, headers: Record<string, string> = {}, over = sendHttp1) =>
  over(app.url, { method, path, headers: { ...bearer(key.secret), ...headers } });

// biome-ignore format: a few lines
test.each([
  "/v1", "/v1/", "/v1/nothing", "/v1/me/", "/v1/keys/", "/v1//me", "/v1/me/more", "/v1/Me", "/v1/me:revoke", "/v1/keys/key_x:nothing",
  "/v1/keys/a%2Fb", "/v1/keys/a%2fb", "/v1/keys/%C3%A4", "/v1/keys/a%25b", "/v1/keys/..%2f..", "/v1/keys/a+b",
  "/v1/keys/%", "/v1/keys/%zz", "/v1/keys/%ff", "/v1/keys/%ed%a0%80", "/v1/%c0%ae", "/v1/keys/%E0%A4%A",
])("%s returns 404", async (path) => {
  expectError(await call("GET", path), "not_found");
});

test.each([
  ["POST", "/v1/me", "GET, HEAD, OPTIONS"],
  ["DELETE", "/v1/keys", "GET, POST, HEAD, OPTIONS"],
  ["GET", "/v1/generate", "POST, OPTIONS"],
  ["HEAD", "/v1/generate", "POST, OPTIONS"],
  ["HEAD", "/v1/events:watch", "GET, OPTIONS"],
  ["PUT", "/v1/keys/key_x", "GET, DELETE, PATCH, HEAD, OPTIONS"],
  ["GET", "/v1/keys/key_x:revoke", "POST, OPTIONS"],
])("%s %s returns 405 and lists the allowed methods", async (method, path, allowed) => {
  const answer = await call(method, path);
  expect(answer.status).toBe(405);
  expect(answer.headers.allow?.split(", ").sort()).toEqual(allowed.split(", ").sort());
  if (method !== "HEAD") expectError(answer, "method_not_allowed");
});

test.each([
  ["/v1/me", "GET, HEAD, OPTIONS"],
  ["/v1/keys", "GET, HEAD, OPTIONS, POST"],
  ["/v1/keys/key_x", "DELETE, GET, HEAD, OPTIONS, PATCH"],
  ["/v1/chat/completions", "OPTIONS, POST"],
])("OPTIONS %s returns the allowed methods and no CORS headers", async (path, allowed) => {
  const preflight = { origin: "https://example.com", "access-control-request-method": "POST" };
  const answer = await call("OPTIONS", path, preflight);
  expect({ status: answer.status, bytes: answer.body.length }).toEqual({ status: 204, bytes: 0 });
  expect(answer.headers.allow?.split(", ").sort().join(", ")).toBe(allowed);
  expect(answer.headers["content-length"]).toBeUndefined();
  expect(Object.keys(answer.headers).join(" ")).not.toMatch(/access-control/);
});

test("OPTIONS of an unknown path returns 404", async () => {
  expectError(await call("OPTIONS", "/v1/nothing"), "not_found");
});

test("every path of every method returns 401 without a key and with an invalid key", async () => {
  for (const method of developerMethods) {
    const expectRefusal = surfaceOf(method.parent) === "anthropic" ? expectAnthropicError : expectError;
    for (const { verb, path, selectedByHeader } of httpBindings(method)) {
      const selected = selectedByHeader === "" ? {} : { [selectedByHeader]: "2023-06-01" };
      const without = await sendHttp1(app.url, { method: verb, path, headers: { ...JSON_BODY, ...selected } });
      expectRefusal(without, "missing_api_key");
      expect(without.headers["www-authenticate"]).toBe("Bearer");
      const wrong = await sendHttp1(app.url, { method: verb, path, headers: { ...bearer(`${key.secret}x`), ...selected } });
      expectRefusal(wrong, "invalid_api_key");
      expect(wrong.headers["www-authenticate"]).toBe("Bearer");
    }
  }
});

test.each([
  ["GET", "/v1"],
  ["GET", "/v1/nothing"],
  ["GET", "/v1/%ff"],
  ["OPTIONS", "/v1/me"],
  ["POST", "/v1/me"],
])("%s %s without a key returns 401, so that it does not reveal routes", async (method, path) => {
  expectError(await sendHttp1(app.url, { method, path }), "missing_api_key");
});

test.each(https.flatMap((http) => ["/v1/me", "/v1/keys", "/v1/ledger"].map((path) => ({ ...http, path }))))(
  "HEAD $path returns the headers of GET without the body, over $name",
  async ({ path, send }) => {
    const [get, head] = [await call("GET", path, {}, send), await call("HEAD", path, {}, send)];
    expect(head.status).toBe(200);
    expect(head.body.length).toBe(0);
    const same = ["content-type", "content-length", "cache-control"];
    expect(same.map((name) => head.headers[name])).toEqual(same.map((name) => get.headers[name]));
  },
);

test.each(https)("HEAD returns the error without its body, over $name", async ({ send }) => {
  const path = "/v1/nothing";
  const [get, head] = [await call("GET", path, {}, send), await call("HEAD", path, {}, send)];
  checkEnvelope(get);
  expect({ status: head.status, bytes: head.body.length }).toEqual({ status: get.status, bytes: 0 });
});

test("a valid request id is returned in header and body; an invalid one is replaced", async () => {
  const answer = await call("GET", "/v1/nothing", { "x-request-id": "my-id.1" });
  expect(expectError(answer, "not_found").request_id).toBe("my-id.1");
  const insane = await call("GET", "/v1/nothing", { "x-request-id": 'a"b' });
  expect(expectError(insane, "not_found").request_id).toMatch(/^req_/);
});

describe("request targets that client libraries do not send", () => {
  const request = (line: string, headers: string[] = []) =>
    [`${line} HTTP/1.1`, "host: vx", "connection: close", ...headers, "", ""].join("\r\n");
  const auth = () => `authorization: Bearer ${key.secret}`;

  test.each(["/v1/../v1/me", "/v1/./me", "/v1/me#x", "/v1\\me", "/V1/me", "//v1/me", "/v1/me;a=b"])(
    "GET %s is a 404 in the envelope",
    async (target) => {
      const { text } = await talk(app.url, request(`GET ${target}`, [auth()]));
      expect(text).toMatch(/^HTTP\/1\.1 404 /);
      expect(text).toContain('"code":"not_found"');
    },
  );

  test("requests in one packet get their responses in order, each with its own id", async () => {
    const lines = ["GET /v1/me", "GET /v1/nothing", "HEAD /v1/me", "POST /v1/me"];
    const all = lines.map((line, i) => request(line, [auth(), `x-request-id: r${i}`]).replace("connection: close\r\n", ""));
    const { text } = await talk(app.url, all.join("") + request("GET /v1/keys", [auth(), "x-request-id: r9"]));
    expect(text.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9))).toEqual(["200", "404", "200", "405", "200"]);
    expect(text.match(/x-request-id: \w+/gi)?.map((line) => line.slice(14))).toEqual(["r0", "r1", "r2", "r3", "r9"]);
  });
});
