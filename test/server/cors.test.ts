import { beforeAll, describe, expect, test } from "vitest";
import { httpBindings } from "../../src/server/rest/http-rule.ts";
import { envelope } from "../../src/server/wire/rpc.ts";
import { developerMethods, pathOf } from "../support/any-method.ts";
import { OPERATOR_TOKEN, useOwnApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { createPaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";
import { type RawAnswer, type RawRequest, sendHttp1, sendHttp2 } from "../support/raw.ts";
import { talk } from "../support/tcp.ts";

const generation = (content: string) => ({ model: "vx-sandbox-small", messages: [{ role: "user", content }] });
const GENERATE = generation("[[tokens=3]]");
const FAILING = generation("[[fail_after=0]]");
const INTERRUPTED = generation("[[tokens=5 fail_after=2]]");

/** `full` allows one call per minute: its window is full. */
type CaseKeys = { readonly paid: string; readonly unpaid: string; readonly full: string };

/** The key with which a request is sent; "" for none. */
type Key = keyof CaseKeys | "";
type Case = readonly [what: string, status: number, key: Key, request: (secret: string) => RawRequest];

const post = (path: string, type: string, body: string | Uint8Array) => (secret: string) => ({
  path,
  headers: { "content-type": type, ...(secret === "" ? {} : bearer(secret)) },
  body,
});
const rest = (path: string, message: object) => post(path, "application/json", JSON.stringify(message));
const framed = (type: string, rpc: string, message: object) => post(rpc, type, envelope(0, Buffer.from(JSON.stringify(message))));
const grpcWeb = (rpc: string, message: object) => framed("application/grpc-web+json", rpc, message);
const connectStream = (message: object) => framed("application/connect+json", STREAM, message);
const get =
  (path: string, method = "GET") =>
  (secret: string): RawRequest => ({ method, path, headers: secret === "" ? {} : bearer(secret) });

const ONCE = "/vx.v1.GenerateService/Generate";
const STREAM = "/vx.v1.GenerateService/StreamGenerate";
const GET_ME = "/vx.v1.MeService/GetMe";

/**
 * Requests with every kind of response: calls, streams and errors of each protocol, and pages. The status is 200 for gRPC-Web and Connect
 * streams, whose errors are in the trailers or the body.
 */
const CASES: readonly Case[] = [
  ["a REST call", 200, "paid", get("/v1/me")],
  ["a REST generation", 200, "paid", rest("/v1/generate", GENERATE)],
  ["a REST stream", 200, "paid", rest("/v1/generate", { ...GENERATE, stream: true })],
  ["an interrupted REST stream", 200, "paid", rest("/v1/generate", { ...INTERRUPTED, stream: true })],
  ["a repeated generation", 200, "paid", repeated],
  ["a chat completion", 200, "paid", rest("/v1/chat/completions", GENERATE)],
  ["OPTIONS that is no preflight", 204, "paid", get("/v1/me", "OPTIONS")],
  ["REST 400", 400, "paid", rest("/v1/generate", { model: 1 })],
  ["REST 401", 401, "", rest("/v1/generate", GENERATE)],
  ["REST 402", 402, "unpaid", rest("/v1/generate", GENERATE)],
  ["REST 404", 404, "paid", rest("/v1/nothing", {})],
  ["REST 405", 405, "paid", rest("/v1/me", {})],
  ["REST 413", 413, "paid", rest("/v1/generate", { text: "a".repeat(2_000_000) })],
  ["REST 415", 415, "paid", post("/v1/generate", "text/plain", "a")],
  ["REST 429", 429, "full", rest("/v1/generate", GENERATE)],
  ["REST 502", 502, "paid", rest("/v1/generate", FAILING)],
  ["a Connect call", 200, "paid", rest(ONCE, GENERATE)],
  ["a Connect GET", 200, "paid", get(`${GET_ME}?connect=v1&encoding=json&message=%7B%7D`)],
  ["a Connect stream", 200, "paid", connectStream(GENERATE)],
  ["an interrupted Connect stream", 200, "paid", connectStream(INTERRUPTED)],
  ["a refused Connect stream", 200, "full", connectStream(GENERATE)],
  ["Connect 401", 401, "", rest(ONCE, GENERATE)],
  ["Connect 404", 404, "paid", rest("/vx.v1.MeService/Nothing", {})],
  ["Connect 415", 415, "paid", post(GET_ME, "text/plain", "a")],
  ["Connect 429", 429, "full", rest(ONCE, GENERATE)],
  ["Connect 503", 503, "paid", rest(ONCE, FAILING)],
  ["a gRPC-Web call", 200, "paid", grpcWeb(ONCE, GENERATE)],
  ["a gRPC-Web stream", 200, "paid", grpcWeb(STREAM, GENERATE)],
  ["an interrupted gRPC-Web stream", 200, "paid", grpcWeb(STREAM, INTERRUPTED)],
  ["gRPC-Web UNAUTHENTICATED", 200, "", grpcWeb(ONCE, GENERATE)],
  ["gRPC-Web RESOURCE_EXHAUSTED", 200, "full", grpcWeb(ONCE, GENERATE)],
  ["gRPC-Web UNIMPLEMENTED", 200, "paid", grpcWeb("/vx.v1.MeService/Nothing", {})],
  ["gRPC-Web health", 200, "", grpcWeb("/grpc.health.v1.Health/Check", {})],
  ["an unknown path", 404, "", get("/nothing")],
  ["/readyz", 200, "", get("/readyz")],
  ["/openapi.json", 200, "", get("/openapi.json")],
];

function repeated(secret: string): RawRequest {
  const request = rest("/v1/generate", GENERATE)(secret);
  return { ...request, headers: { ...request.headers, "idempotency-key": "once" } };
}

const ALLOWED = "https://app.example.com";
const ALSO_ALLOWED = "http://localhost:5173";
const NOT_ALLOWED = [
  "https://other.example.com",
  "http://app.example.com",
  "https://app.example.com:8443",
  "https://app.example.com.attacker.example",
  "https://sub.app.example.com",
  "HTTPS://APP.EXAMPLE.COM",
  "null",
  "*",
  "",
];

let keys: CaseKeys;

const app = useOwnApp({ env: { VX_CORS_ORIGINS: `${ALLOWED}, ${ALSO_ALLOWED}`, VX_MAX_BODY_BYTES: "2000000" } });
beforeAll(async () => {
  const operator = operatorOf(app);
  const paid = await createPaidKey(operator);
  const unpaid = await createTestKey(operator);
  const full = await createTestKey(operator, { rateLimitRpm: 1 });
  keys = { paid: paid.secret, unpaid: unpaid.secret, full: full.secret };
});

/** The response headers that pages can read without a list (Fetch standard), or that say nothing to a page. */
const NEEDS_NO_LIST =
  /^(cache-control|content-language|content-length|content-type|expires|last-modified|pragma|date|connection|keep-alive|transfer-encoding|vary|x-accel-buffering|access-control-.*)$/;
/** Headers of pages for people. */
const OF_PAGES = /^(content-security-policy|cross-origin-opener-policy|referrer-policy|x-content-type-options|etag)$/;

function withOrigin(request: RawRequest, origin: string): RawRequest {
  return { ...request, headers: { ...request.headers, origin } };
}

function corsHeaders({ headers }: RawAnswer): string[] {
  return Object.keys(headers).filter((name) => name.startsWith("access-control-"));
}

const send = (request: RawRequest) => sendHttp1(app.url, request);

test.each(CASES)("%s can be read by allowed origins only", async (_what, status, key, request) => {
  const answerTo = (origin?: string) =>
    withinOneMinute(async () => {
      if (key === "full") await send({ method: "GET", path: "/v1/models", headers: bearer(keys.full) });
      const sent = request(key === "" ? "" : keys[key]);
      return await send(origin === undefined ? sent : withOrigin(sent, origin));
    });
  const answer = await answerTo(ALLOWED);
  expect(answer.status).toBe(status);
  expect(corsHeaders(answer).sort()).toEqual(["access-control-allow-origin", "access-control-expose-headers"]);
  expect(answer.headers["access-control-allow-origin"]).toBe(ALLOWED);
  expect(answer.headers.vary?.split(", ")).toContain("Origin");
  const exposed = answer.headers["access-control-expose-headers"]?.split(", ") ?? [];
  const hidden = Object.keys(answer.headers).filter(
    (name) => !exposed.includes(name) && !NEEDS_NO_LIST.test(name) && !OF_PAGES.test(name),
  );
  expect(hidden).toEqual([]);
  for (const other of [await answerTo(), await answerTo(NOT_ALLOWED[0])]) {
    expect(corsHeaders(other)).toEqual([]);
    expect(other.headers.vary ?? "").not.toMatch(/origin/i);
  }
});

test("the second allowed origin is allowed, over HTTP/2 too", async () => {
  const request = { method: "GET", path: "/v1/me", headers: { ...bearer(keys.paid), origin: ALSO_ALLOWED } };
  for (const answer of [await send(request), await sendHttp2(app.url, request)])
    expect(answer.headers["access-control-allow-origin"]).toBe(ALSO_ALLOWED);
  expect((await sendHttp2(app.url, preflightOf("/v1/me", "GET", ALSO_ALLOWED))).status).toBe(204);
});

describe("a request", () => {
  test.each(NOT_ALLOWED)("the origin %j is not allowed", async (origin) => {
    const request = { method: "GET", path: "/v1/me", headers: { ...bearer(keys.paid), origin } };
    expect(corsHeaders(await send(request))).toEqual([]);
    const preflight = await send(preflightOf("/v1/me", "GET", origin));
    expect(preflight.status).toBe(401);
    expect(corsHeaders(preflight)).toEqual([]);
  });

  test("two Origin headers are not an allowed origin", async () => {
    const headers = { ...bearer(keys.paid), origin: [ALLOWED, ALSO_ALLOWED] };
    expect(corsHeaders(await send({ method: "GET", path: "/v1/me", headers }))).toEqual([]);
  });

  test("a compressed response also depends on Accept-Encoding", async () => {
    const accepting = { origin: ALLOWED, "accept-encoding": "gzip" };
    const page = await send({ method: "GET", path: "/openapi.json", headers: accepting });
    expect(page.headers).toMatchObject({ "content-encoding": "gzip", vary: "Origin, accept-encoding, x-forwarded-proto" });
    const reply = await send({
      path: "/v1/generate",
      headers: { ...accepting, ...bearer(keys.paid), "content-type": "application/json" },
      body: JSON.stringify(generation("[[tokens=500]]")),
    });
    expect(reply.headers).toMatchObject({ "content-encoding": "gzip", vary: "Origin, accept-encoding" });
  });

  test("a request with too large headers is refused with CORS headers where HTTP allows it", async () => {
    const headers = { origin: ALLOWED, "x-long": "a".repeat(20_000) };
    const request = { method: "GET", path: "/v1/me", headers };
    const [first, second] = [await send(request), await sendHttp2(app.url, request)];
    expect([first.status, second.status]).toEqual([431, 431]);
    // The HTTP/1.1 parser stops before it has read the headers.
    expect(corsHeaders(first)).toEqual([]);
    expect(second.headers["access-control-allow-origin"]).toBe(ALLOWED);
  });
});

function preflightOf(path: string, method: string, origin = ALLOWED): RawRequest {
  const headers = {
    origin,
    "access-control-request-method": method,
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
  };
  return { method: "OPTIONS", path, headers };
}

describe("preflights", () => {
  const routes = developerMethods.flatMap((method) => [
    { path: pathOf(method), verb: "POST" },
    { path: pathOf(method), verb: "GET" },
    ...httpBindings(method).map(({ path, verb }) => ({ path, verb })),
  ]);

  test("are answered without a key on every path, and allow the method and its headers", async () => {
    expect(routes.length).toBeGreaterThan(20);
    for (const { path, verb } of [...routes, { path: "/v1/nothing", verb: "POST" }, { path: "/", verb: "GET" }]) {
      const answer = await send(preflightOf(path, verb));
      expect({ status: answer.status, bytes: answer.body.length }, path).toEqual({ status: 204, bytes: 0 });
      expect(answer.headers).toMatchObject({
        "access-control-allow-origin": ALLOWED,
        "access-control-max-age": "7200",
        vary: "Origin",
      });
      expect(answer.headers["x-request-id"]).toMatch(/^req_/);
      expect(answer.headers["access-control-allow-methods"]?.split(", ")).toContain(verb);
      const allowed = "authorization content-type idempotency-key connect-protocol-version connect-timeout-ms";
      expect(answer.headers["access-control-allow-headers"]?.split(", ")).toEqual(
        expect.arrayContaining([...allowed.split(" "), "x-grpc-web", "x-user-agent", "grpc-timeout", "*"]),
      );
    }
  });

  test("never allow credentials of the browser or access to a private network", async () => {
    const preflight = preflightOf("/v1/me", "GET");
    const headers = { ...preflight.headers, "access-control-request-private-network": "true" };
    const answer = await send({ ...preflight, headers });
    expect(answer.status).toBe(204);
    expect(answer.headers["access-control-allow-credentials"]).toBeUndefined();
    expect(answer.headers["access-control-allow-private-network"]).toBeUndefined();
  });

  test("cost no slot of the rate limit and no database call", async () => {
    const before = await admissionBatches();
    await send(preflightOf("/v1/generate", "POST"));
    expect(await admissionBatches()).toBe(before);
  });

  test("of other origins are ordinary OPTIONS requests", async () => {
    const rpc = await send(preflightOf("/vx.v1.MeService/GetMe", "POST", NOT_ALLOWED[0]));
    const keyless = await send(preflightOf("/v1/me", "GET", NOT_ALLOWED[0]));
    expect([rpc.status, keyless.status]).toEqual([405, 401]);
    for (const answer of [rpc, keyless]) expect(corsHeaders(answer)).toEqual([]);
  });
});

test("OPTIONS of an allowed origin without Access-Control-Request-Method needs a key", async () => {
  const answer = await send({ method: "OPTIONS", path: "/v1/me", headers: { origin: ALLOWED } });
  expect(answer.status).toBe(401);
  expect(answer.headers["access-control-allow-origin"]).toBe(ALLOWED);
});

test("a preflight with an invalid Host is refused", async () => {
  const lines = ["OPTIONS /v1/me HTTP/1.1", "host: a b", `origin: ${ALLOWED}`, "access-control-request-method: GET"];
  const { text } = await talk(app.url, [...lines, "connection: close", "", ""].join("\r\n"));
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text).toContain(`access-control-allow-origin: ${ALLOWED}\r\n`);
});

describe("refusals of the HTTP layer", () => {
  const refusal = async (origin: string, lines: readonly string[], body = "") => {
    const head = ["POST /v1/generate HTTP/1.1", "host: vx", `origin: ${origin}`, ...lines, "", ""];
    const { text } = await talk(app.url, head.join("\r\n") + body);
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    return text.toLowerCase();
  };

  test.each([
    ["several hosts", () => ["host: other"], ""],
    ["an unknown transfer coding", () => ["transfer-encoding: gzip, chunked"], ""],
    [
      "an invalid chunk",
      () => ["transfer-encoding: chunked", "content-type: application/json", `authorization: Bearer ${keys.paid}`],
      "no length\r\n",
    ],
  ])("%s: an allowed origin can read the error, another one cannot", async (_what, lines, body) => {
    const allowed = await refusal(ALLOWED, lines(), body);
    expect(allowed).toContain(`\r\naccess-control-allow-origin: ${ALLOWED}\r\n`);
    expect(allowed).toContain("\r\naccess-control-expose-headers: ");
    expect(allowed).toContain("\r\nvary: origin\r\n");
    expect(await refusal(NOT_ALLOWED[0] ?? "", lines(), body)).not.toMatch(/access-control|vary/);
  });
});

test("the operator listener has no CORS headers", async () => {
  const path = "/vx.admin.v1.AdminService/ListPlans";
  const headers = { origin: ALLOWED, "content-type": "application/json", ...bearer(OPERATOR_TOKEN) };
  const answers = [
    await sendHttp1(app.adminUrl, { path, headers, body: "{}" }),
    await sendHttp1(app.adminUrl, { path, headers: { origin: ALLOWED }, body: "{}" }),
    await sendHttp1(app.adminUrl, preflightOf(path, "POST")),
    await sendHttp1(app.adminUrl, { method: "GET", path: "/metrics", headers }),
    await sendHttp2(app.adminUrl, {
      method: "GET",
      path: "/metrics",
      headers: { origin: ALLOWED, "x-long": "a".repeat(20_000) },
    }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 415, 405, 200, 431]);
  for (const answer of answers) expect(corsHeaders(answer)).toEqual([]);
});

async function admissionBatches(): Promise<string | undefined> {
  const page = await fetch(`${app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
  return /^vx_batch_size_count\{batcher="admission"\} (\d+)$/m.exec(await page.text())?.[1];
}
