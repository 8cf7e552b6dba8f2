import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Surface } from "../../gen/vx/options/v1/options_pb.js";
import { generateKey } from "../../src/domain/credentials.ts";
import { DomainError, ERRORS, type ErrorStatus, type Reason } from "../../src/domain/errors.ts";
import type { Lane } from "../../src/domain/lane.ts";
import type { AdmittedKey } from "../../src/keys/admit.ts";
import { FailedAuthentications } from "../../src/server/credentials/failed-authentications.ts";
import { authenticateKey } from "../../src/server/interceptors/authenticate-key.ts";
import { limitRate } from "../../src/server/interceptors/limit-rate.ts";
import { HttpRuleError } from "../../src/server/rest/http-rule.ts";
import { restRoutes } from "../../src/server/rest/rest-routes.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { https, JSON_BODY, jsonOf } from "./answers.ts";
import { type MethodSpec, type TestFile, testFile } from "./descriptors.ts";
import { mount, OPEN } from "./mount.ts";

type Ask = { readonly kind: string };

const MESSAGES = {
  Ask: ["string kind", "bool stream"],
  Reply: ["string type", "int32 number"],
  Untyped: ["optional int32 type"],
};
const HTTP = { pattern: { case: "post", value: "/v1/say" }, body: "*" } as const;
const METHODS: Record<string, MethodSpec> = {
  Say: { input: "Ask", output: "Reply", http: HTTP },
  StreamSay: { input: "Ask", output: "Reply", streams: true, http: HTTP, selectedBy: "stream" },
  ListBelow: { input: "Ask", output: "Reply", http: { pattern: { case: "get", value: "/v1/say/{kind}/below" } } },
};

function fail({ kind }: Ask): void {
  if (kind === "breaks") throw new Error("a secret");
  if (Object.hasOwn(ERRORS, kind)) throw new DomainError(kind as Reason, { retryAfterSeconds: 7 });
}

function say(ask: Ask) {
  fail(ask);
  return { type: "said" };
}

async function* events(ask: Ask) {
  yield { type: "say.started", number: 1 };
  yield { type: "say.ended", number: 2 };
  fail(ask);
}

const serve = (surface: Surface, options: Partial<Parameters<typeof mount>[1]> = {}) =>
  mount(testFile(MESSAGES, METHODS, surface), { methods: { say, streamSay: events }, maxBodyBytes: 100_000, ...options });

/** Of both versions of HTTP; the forms of responses are written to either in the same way. */
const [{ send }] = https;

const STARTED = '{"type":"say.started","number":1}';
const ENDED = '{"type":"say.ended","number":2}';
const UNNAMED = `data: ${STARTED}\n\ndata: ${ENDED}\n\n`;
const NAMED = `event: say.started\ndata: ${STARTED}\n\nevent: say.ended\ndata: ${ENDED}\n\n`;

const isApiError = { type: "api_error", code: "upstream_error", request_id: "r1" };

const { message } = ERRORS.upstream_error;

describe.each([
  { surface: Surface.UNSPECIFIED, text: UNNAMED, end: "data: [DONE]\n\n", name: "", error: { error: isApiError } },
  { surface: Surface.OPENAI, text: UNNAMED, end: "data: [DONE]\n\n", name: "", error: { error: isApiError } },
  {
    surface: Surface.OPENAI_RESPONSES,
    text: NAMED,
    end: "",
    name: "event: error\n",
    error: { type: "error", sequence_number: 2, code: "upstream_error", message, param: null, error: isApiError },
  },
  {
    surface: Surface.ANTHROPIC,
    text: NAMED,
    end: "",
    name: "event: error\n",
    error: { type: "error", error: { type: "api_error", message, code: "upstream_error" }, request_id: "r1" },
  },
])("a stream of the surface $surface", ({ surface, text, end, name, error }) => {
  const mounted = started(() => serve(surface));

  const stream = async (kind: string) => {
    const headers = { ...JSON_BODY, "x-request-id": "r1" };
    return (await send(mounted.url, { path: "/v1/say", headers, body: JSON.stringify({ kind, stream: true }) })).body.toString();
  };

  test("has its events and its end", async () => {
    expect(await stream("")).toBe(text + end);
  });

  test("has its error after the first event", async () => {
    const answer = await stream("upstream_error");
    expect(answer.startsWith(`${text}${name}data: {`)).toBe(true);
    const json = answer.slice(`${text}${name}data: `.length);
    expect(json.endsWith("}\n\n")).toBe(true);
    expect(JSON.parse(json)).toMatchObject(error);
  });

  test("hides an unexpected error", async () => {
    const answer = await stream("breaks");
    expect(answer).toContain(ERRORS.internal.message);
    expect(answer).not.toContain("secret");
  });
});

const ANTHROPIC_TYPES: Record<ErrorStatus, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  405: "invalid_request_error",
  409: "invalid_request_error",
  410: "invalid_request_error",
  413: "request_too_large",
  415: "invalid_request_error",
  422: "invalid_request_error",
  429: "rate_limit_error",
  500: "api_error",
  501: "api_error",
  502: "api_error",
  503: "overloaded_error",
  504: "timeout_error",
};

describe("errors of the Anthropic surface", () => {
  const mounted = started(() => serve(Surface.ANTHROPIC));

  const call = (body: string, options: object = {}) =>
    send(mounted.url, { method: "POST", path: "/v1/say", headers: JSON_BODY, body, ...options });

  function expectAnthropic(answer: Awaited<ReturnType<typeof call>>, reason: Reason): Record<string, unknown> {
    const { status, code } = ERRORS[reason];
    expect(answer.status).toBe(status);
    expect(answer.headers["content-type"]).toBe("application/json");
    const { error, ...rest } = jsonOf(answer);
    expect(rest).toEqual({ type: "error", request_id: answer.headers["x-request-id"] });
    expect(answer.headers["request-id"]).toBe(rest.request_id);
    const known = error as Record<string, unknown>;
    expect(known).toMatchObject({ type: ANTHROPIC_TYPES[status], code: reason, status: code });
    expect(known.details).toMatchObject({ error_code: reason });
    return known;
  }

  test.each(Object.keys(ERRORS) as Reason[])("%s keeps its status, its code and its headers", async (reason) => {
    for (const stream of [false, true]) {
      const answer = await call(JSON.stringify({ kind: reason, stream }));
      if (stream) expect(answer.body.toString()).toContain(`"code":"${reason}"`);
      else {
        expectAnthropic(answer, reason);
        expect(answer.headers["retry-after"]).toBe("7");
        expect(answer.headers["x-should-retry"]).toBe(ERRORS[reason].shouldRetry?.toString());
      }
    }
  });

  test("an unknown field is named", async () => {
    expect(expectAnthropic(await call('{"nothing":1}'), "invalid_argument")).toMatchObject({ param: "nothing" });
  });

  test("an unexpected error is hidden", async () => {
    expectAnthropic(await call('{"kind":"breaks"}'), "internal");
  });

  test.each<[string, Reason, object]>([
    ["another verb", "method_not_allowed", { method: "PUT" }],
    ["a path below one of the service", "not_found", { path: "/v1/say/x" }],
    ["a path below a path with a variable", "not_found", { path: "/v1/say/x/below/y" }],
    ["a custom verb", "not_found", { path: "/v1/say:all" }],
    ["another type", "unsupported_media_type", { headers: { "content-type": "text/plain" } }],
    ["a body that is too large", "request_too_large", { body: `{"kind":"${"x".repeat(100_000)}"}` }],
  ])("%s is an error of this surface", async (_name, reason, options) => {
    expectAnthropic(await call("{}", options), reason);
  });

  test.each(["/v1/sayings", "/v1", "/v1/", "/v1/other/say"])("%s is not a path of the service", async (path) => {
    expect(jsonOf(await call("{}", { path }))).toMatchObject({ error: { type: "invalid_request_error" } });
  });

  test("the headers of Anthropic's clients are ignored", async () => {
    const headers = { ...JSON_BODY, "anthropic-version": "2023-06-01", "anthropic-beta": "x-2025-01-01,y" };
    expect(jsonOf(await call("{}", { headers }))).toEqual({ type: "said", number: 0 });
  });
});

describe("the gate of the Anthropic surface", () => {
  let admission: Awaited<ReturnType<Parameters<typeof authenticateKey>[0]["admitter"]["admit"]>>;
  const admitter = { admit: async () => admission };
  const failures = new FailedAuthentications(0, Date.now);
  const mounted = started(() =>
    serve(Surface.ANTHROPIC, { authenticate: [authenticateKey({ admitter, failures }), limitRate()] }),
  );
  const call = (headers: Record<string, string>) =>
    send(mounted.url, { path: "/v1/say", headers: { ...JSON_BODY, ...headers }, body: "{}" });

  test("a call without a credential is an authentication error", async () => {
    const answer = await call({});
    expect(answer.headers["www-authenticate"]).toBe("Bearer");
    expect(jsonOf(answer)).toMatchObject({ error: { type: "authentication_error", message: ERRORS.missing_api_key.message } });
  });

  test("a call with only x-api-key gets an error that says how to send a token", async () => {
    const answer = await call({ "x-api-key": "any" });
    expect(answer.status).toBe(401);
    const message = expect.stringMatching(/'Authorization: Bearer <API_KEY>'.*ANTHROPIC_AUTH_TOKEN.*authToken/);
    expect(jsonOf(answer)).toMatchObject({ error: { code: "missing_api_key", message } });
  });

  test("a full window is a rate limit error with its headers", async () => {
    admission = {
      outcome: "rate_limited",
      key: { accountId: "", keyId: "" } as AdmittedKey,
      window: { limit: 5, remaining: 0, secondsLeft: 9 },
    };
    const answer = await call({ ...bearer(generateKey(0 as Lane, randomBytes).secret), "x-api-key": "any" });
    expect(answer.status).toBe(429);
    expect(answer.headers).toMatchObject({ "retry-after": "9", ratelimit: '"rpm";r=0;t=9' });
    expect(jsonOf(answer)).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
  });
});

describe("the server does not start with", () => {
  const routesOf = (...files: TestFile[]) => {
    const methods = { say, streamSay: events };
    const served = files.map(({ service }) => ({ service, unknownFields: "refuse", methods }) as const);
    const policies = new Map(files.flatMap(({ service }) => service.methods.map((method) => [method, OPEN] as const)));
    return restRoutes(served, { policies, maxBodyBytes: 1_024 });
  };
  const { Say, StreamSay } = METHODS as Record<"Say" | "StreamSay", MethodSpec>;

  test.each(["Ask", "Untyped"])("named events of the message %s, which has no text `type`", (output) => {
    const methods = { Say, StreamSay: { ...StreamSay, output } };
    expect(() => routesOf(testFile(MESSAGES, methods, Surface.OPENAI_RESPONSES))).toThrow(HttpRuleError);
    expect(() => routesOf(testFile(MESSAGES, methods, Surface.ANTHROPIC))).toThrow(/"string type"/);
    expect(() => routesOf(testFile(MESSAGES, methods, Surface.OPENAI))).not.toThrow();
  });

  test("two surfaces at one address", () => {
    const unary = testFile(MESSAGES, { Say }, Surface.OPENAI);
    expect(() => routesOf(unary, testFile(MESSAGES, { StreamSay }, Surface.ANTHROPIC))).toThrow(/another surface/);
    expect(() => routesOf(unary, testFile(MESSAGES, { StreamSay }, Surface.OPENAI))).not.toThrow();
  });
});
