import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type HttpRule, HttpRuleSchema } from "../../gen/google/api/http_pb.js";
import { HttpRuleError, httpBindings } from "../../src/server/rest/http-rule.ts";
import { DuplicateRouteError, restRoutes } from "../../src/server/rest/rest-routes.ts";
import { sendHttp1 } from "../support/raw.ts";
import { started } from "../support/started.ts";
import { expectError, JSON_BODY, jsonOf } from "./answers.ts";
import { testFile } from "./descriptors.ts";
import { mount, OPEN } from "./mount.ts";

const rule = (init: MessageInitShape<typeof HttpRuleSchema>): HttpRule => create(HttpRuleSchema, init);
const get = (value: string) => rule({ pattern: { case: "get", value } });
const post = (value: string, body: string) => rule({ pattern: { case: "post", value }, body });
const custom = (kind: string, path: string) => rule({ pattern: { case: "custom", value: { kind, path } } });

const MESSAGES = {
  Sub: ["string name", "int32 number", "Sub sub"],
  Ask: [
    "string name",
    "Sub sub",
    "int64 big",
    "optional bool flag",
    "int32 number",
    "repeated string tags",
    "repeated Color colors",
    "repeated int64 numbers",
    "Color color",
    "double ratio",
    "bytes blob",
    "google.protobuf.Timestamp at",
    "google.protobuf.Duration within",
    "google.protobuf.FieldMask mask",
    "google.protobuf.Int64Value wrapped",
    "google.protobuf.StringValue maybe_text",
    "choice: string left",
    "choice: int32 right",
    "choice: Sub middle",
    "map<string,int32> counts",
    "repeated Sub subs",
    "google.protobuf.Struct anything",
    "string two_words",
  ],
};

const file = testFile(
  { ...MESSAGES, Answer: ["string rpc", "Ask asked", "choice: Ask chosen", "repeated Sub subs", "int64 big"] },
  {
    Get: { input: "Ask", output: "Answer", http: get("/v1/get/{name}") },
    Dig: { input: "Ask", output: "Answer", http: get("/v1/get/{name}:dig") },
    Deep: { input: "Ask", output: "Answer", http: get("/v1/get/{name}/deep.er/{two_words}") },
    Literal: { input: "Ask", output: "Answer", http: { ...get("/v1/get/literal"), additionalBindings: [get("/v1/get:all")] } },
    Put: {
      input: "Ask",
      output: "Answer",
      http: { pattern: { case: "put", value: "/v1/put/{name}" }, body: "*" },
    },
    Whole: { input: "Ask", output: "Answer", http: { ...post("/v1/whole", "*"), responseBody: "asked" } },
    Subs: { input: "Ask", output: "Answer", http: { ...post("/v1/get/subs", "*"), responseBody: "subs" } },
    Big: { input: "Ask", output: "Answer", http: { ...post("/v1/big", "*"), responseBody: "big" } },
  },
);

const echo = (rpc: string) => (asked: { name: string; subs: object[]; big: bigint }) =>
  asked.name === "nobody" ? { rpc } : { rpc, asked, subs: asked.subs, big: asked.big };
const methods = Object.fromEntries(file.service.methods.map(({ name, localName }) => [localName, echo(name)]));
const mounted = started(() => mount(file, { methods }));

const send = (method: string, path: string, body?: string) =>
  sendHttp1(mounted.url, { method, path, ...(body === undefined ? {} : { headers: JSON_BODY, body }) });

async function asked(path: string): Promise<Record<string, unknown>> {
  return jsonOf(await send("GET", path)).asked as Record<string, unknown>;
}

describe("parameters in the path", () => {
  test.each([
    ["/v1/get/x", { name: "x" }],
    ["/v1/get/a%2Fb%20c+d", { name: "a/b c+d" }],
    ["/v1/get/%F0%9F%98%80", { name: "😀" }],
    ["/v1/get/a%2fb/deep.er/%41%3A", { name: "a/b", two_words: "A:" }],
    ["/v1/get/x:y", { name: "x:y" }],
    ["/v1/get/x:y:dig", { name: "x:y" }],
    ["/v1/get/x:dig:", { name: "x:dig:" }],
  ])("%s", async (path, expected) => {
    expect(await asked(path)).toMatchObject(expected);
  });

  test.each([
    "/v1/get",
    "/v1/get/",
    "/v1/get/x/",
    "/v1/get//deep.er/y",
    "/v1/get/x/deeper/y",
    "/v1/get/x/y",
    "/v1/Get/x",
    "/v1/get:dig",
    "/v1/x/__proto__",
    "/v1/get%2Fx",
    "/v1/get/%ff",
    "/v1/get/%",
  ])("%s does not fit", async (path) => {
    expectError(await send("GET", path), "not_found");
  });

  test.each([
    ["/v1/get/literal", "Literal"],
    ["/v1/get/%6Citeral", "Literal"],
    ["/v1/get:all", "Literal"],
    ["/v1/get/literals", "Get"],
    ["/v1/%67et/x", "Get"],
    ["/v1/get/literal:dig", "Dig"],
  ])("%s is served by the most specific path, %s", async (path, rpc) => {
    expect(jsonOf(await send("GET", path)).rpc).toBe(rpc);
  });

  test("a path with the verb of a template has only the methods of that template", async () => {
    expect((await send("POST", "/v1/get/x:dig")).headers.allow).toBe("GET, HEAD, OPTIONS");
  });
});

describe("parameters in the query", () => {
  test.each([
    ["&two%5Fwords=%61&", { two_words: "a" }],
    // ProtoJSON accepts integers in any JSON notation.
    ["number=1e0", { number: 1 }],
    ["number=10E-1", { number: 1 }],
    ["number=1.0", { number: 1 }],
    ["number=-1", { number: -1 }],
    ["two_words=a", { two_words: "a" }],
    ["twoWords=a+b%2Bc", { two_words: "a b+c" }],
    ["flag=false", { flag: false }],
    ["", { flag: null, tags: [], sub: null }],
    ["tags=a&tags=b&tags=", { tags: ["a", "b", ""] }],
    ["colors=COLOR_RED&colors=2", { colors: ["COLOR_RED", "COLOR_BLUE"] }],
    ["color=COLOR_BLUE", { color: "COLOR_BLUE" }],
    ["ratio=1.5e-3", { ratio: 0.0015 }],
    ["ratio=-Infinity", { ratio: "-Infinity" }],
    ["blob=-_-_", { blob: "+/+/" }],
    ["at=2026-01-02T03:04:05.5Z", { at: "2026-01-02T03:04:05.500Z" }],
    ["within=1.5s", { within: "1.500s" }],
    ["mask=a,bC.d", { mask: "a,bC.d" }],
    ["wrapped=0", { wrapped: 0 }],
    ["maybe_text=", { maybe_text: "" }],
  ])("?%s", async (query, expected) => {
    expect(await asked(`/v1/get/x?${query}`)).toMatchObject(expected);
  });

  test("64-bit integers keep every digit", async () => {
    const answer = await send("GET", "/v1/get/x?big=-9223372036854775808&numbers=9007199254740993&wrapped=9007199254740995");
    const text = answer.body.toString();
    expect(text).toContain('"big":-9223372036854775808');
    expect(text).toContain('"numbers":[9007199254740993]');
    expect(text).toContain('"wrapped":9007199254740995');
  });

  test.each([
    ["name=y", "name", /set by the path/],
    ["sub=x", "sub", /cannot be set in a query/],
    ["subs=x", "subs", /cannot be set in a query/],
    ["subs.name=x", "subs.name", /not a parameter/],
    ["counts=x", "counts", /cannot be set in a query/],
    ["counts.a=1", "counts.a", /not a parameter/],
    ["anything=x", "anything", /./],
    ["sub.name=x", "sub.name", /not a parameter/],
    ["Two_Words=x", "Two_Words", /not a parameter/],
    ["__proto__=1", "__proto__", /not a parameter/],
    ["__proto__.name=1", "__proto__.name", /not a parameter/],
    ["constructor=1", "constructor", /not a parameter/],
    ["toString", "toString", /not a parameter/],
    ["%C3%A4=1", "ä", /not a parameter/],
    ["=1", null, /not a parameter/],
    ["a&".repeat(5_000), "a", /not a parameter/],
    [`${"x".repeat(5_000)}=1`, `${"x".repeat(200)}…`, /^.{200,400}$/],
    ["two_words=a&two_words=a", "two_words", /more than once/],
    ["two_words=a&twoWords=b", "twoWords", /more than once/],
    ["ratio=%", null, /./],
    ["ratio=%zz", null, /./],
    ["%ff=1", null, /./],
    ["two_words=%ed%a0%80", null, /./],
    ["big=9223372036854775808", "big", /from -9223372036854775808/],
    ["flag=1", "flag", /true or false/],
    ["color=GREEN", "color", /COLOR_RED/],
    ["at=now", "at", /./],
    ["within=soon", "within", /./],
    ["left=a", "left", /cannot be set in a query/],
    ["wrapped=1&wrapped=1", "wrapped", /more than once/],
  ])("?%.50s is rejected", async (query, field, message) => {
    expect(expectError(await send("GET", `/v1/get/x?${query}`), "invalid_argument", field).message).toMatch(message);
  });
});

test.each(["abc", "1.5", "", "1e99", "2147483648", "0x10", "NaN", "true", "1,2"])("%j is no int32", async (text) => {
  expectError(await send("GET", `/v1/get/x?number=${text}`), "invalid_argument", "number");
});

describe("bodies", () => {
  test("a field of the body is rejected in the query", async () => {
    const { message } = expectError(await send("POST", "/v1/whole?name=x", '{"name":"y"}'), "invalid_argument", "name");
    expect(message).toMatch(/from the body/);
  });

  test("an invalid field is named with its path from the request", async () => {
    expectError(await send("PUT", "/v1/put/x", '{"number":"y"}'), "invalid_argument", "number");
    expectError(await send("PUT", "/v1/put/x", '{"sub":{"other":1}}'), "invalid_argument", "sub.other");
    expectError(await send("PUT", "/v1/put/x", '{"subs":[{},{"other":1}]}'), "invalid_argument", "subs[1].other");
    expectError(await send("PUT", "/v1/put/x", '{"counts":{"a":"b"}}'), "invalid_argument", 'counts["a"]');
    expectError(await send("PUT", "/v1/put/x", '{"sub":[]}'), "invalid_argument", "sub");
  });

  test("the path overrides the body", async () => {
    const answer = await send("PUT", "/v1/put/path", '{"name":"body","number":3}');
    expect(jsonOf(answer).asked).toMatchObject({ name: "path", number: 3 });
  });

  test("response_body sends one field as the response", async () => {
    expect(jsonOf(await send("POST", "/v1/whole", '{"name":"x"}')).name).toBe("x");
    expect((await send("POST", "/v1/whole", '{"name":"nobody"}')).body.toString()).toBe("null");
  });

  test("response_body sends a list or a scalar as the response", async () => {
    const text = async (path: string, body: string) => (await send("POST", path, body)).body.toString();
    const subs = JSON.parse(await text("/v1/get/subs", '{"subs":[{"name":"a"},{"name":"b"}]}'));
    expect(subs).toMatchObject([{ name: "a" }, { name: "b" }]);
    expect(await text("/v1/get/subs", "{}")).toBe("[]");
    expect(await text("/v1/big", '{"big":"9007199254740993"}')).toBe("9007199254740993");
  });

  test("a specific path of another verb does not hide a general one", async () => {
    expect(jsonOf(await send("GET", "/v1/get/subs")).rpc).toBe("Get");
    expect((await send("MOVE", "/v1/get/subs")).headers.allow).toBe("POST, GET, HEAD, OPTIONS");
  });
});

describe("an invalid HTTP rule fails the startup with the name of the method:", () => {
  const bindings = (http: HttpRule) =>
    httpBindings(testFile(MESSAGES, { Do: { input: "Ask", output: "Ask", http } }).method("Do"));

  test.each<[string, HttpRule, RegExp]>([
    ["no path", rule({}), /names no path/],
    ["a custom verb", custom("COPY", "/v1/x"), /names no path/],
    ...[
      "",
      "v1",
      "/",
      "/v1/",
      "/v1//x",
      "/v1/{",
      "/v1/{}",
      "/v1/{a}b",
      "/v1/*",
      "/v1/{name=**}",
      "/v1/{sub.name}",
      "/v1:",
      "/v1:a:b",
      "/v1:a/b",
      "/v1/x:{name}",
      "/v1/a b",
      "/v1/%41",
    ].map((path): [string, HttpRule, RegExp] => [`the path "${path}"`, get(path), /is not supported/]),
    ["an unknown field in the path", get("/v1/{nothing}"), /no field "nothing"/],
    ["a list in the path", get("/v1/{tags}"), /not a string/],
    ["a message in the path", get("/v1/{sub}"), /not a string/],
    ["a member of a oneof in the path", get("/v1/{left}"), /not a string/],
    ["a body that is one field", post("/v1/x", "sub"), /the body "sub" is not supported/],
    ["an unknown response body", { ...get("/v1/x"), responseBody: "nothing" }, /no field "nothing"/],
    ["a response body in a oneof", { ...get("/v1/x"), responseBody: "left" }, /member of a oneof/],
    ["a wrong additional binding", { ...get("/v1/x"), additionalBindings: [get("/v1/{x}")] }, /no field "x"/],
    [
      "a binding in an additional binding",
      { ...get("/v1/x"), additionalBindings: [{ ...get("/v1/y"), additionalBindings: [get("/v1/z")] }] },
      /additional/,
    ],
  ])("%s", (_name, wrong, message) => {
    expect(() => bindings(wrong)).toThrow(HttpRuleError);
    expect(() => bindings(wrong)).toThrow(message);
    expect(() => bindings(wrong)).toThrow(/^test\.v1\.TestService\.Do: /);
  });

  test("a method whose selecting field does not exist", () => {
    const Do = { input: "Ask", output: "Ask", http: post("/v1/x", "*"), selectedBy: "nothing" };
    expect(() => httpBindings(testFile(MESSAGES, { Do }).method("Do"))).toThrow(/no field "nothing"/);
  });

  const routesOf = (...file: Parameters<typeof testFile>) => {
    const { service } = testFile(...file);
    const methods = Object.fromEntries(service.methods.map(({ localName }) => [localName, () => ({})]));
    const policies = new Map(service.methods.map((method) => [method, OPEN]));
    return () => restRoutes([{ service, unknownFields: "refuse", methods }], { policies, maxBodyBytes: 1_024 });
  };

  test("two methods with one route, with both names", () => {
    const both = (one: HttpRule, other: HttpRule, selectedBy?: string) => {
      const spec = { input: "Ask", output: "Ask", ...(selectedBy !== undefined && { selectedBy }) };
      return routesOf(MESSAGES, { One: { ...spec, http: one }, Other: { ...spec, http: other } });
    };
    const message = "test.v1.TestService.One and test.v1.TestService.Other have the same route";
    expect(both(get("/v1/x"), get("/v1/x"))).toThrow(new DuplicateRouteError(message));
    expect(both(get("/v1/{name}"), get("/v1/{two_words}"))).toThrow(new DuplicateRouteError(message));
    expect(both(post("/v1/x", "*"), post("/v1/x", "*"), "flag")).toThrow(new DuplicateRouteError(message));
    expect(both(get("/v1/x"), post("/v1/x", "*"))).not.toThrow();
  });

  test("two methods with one route and other fields: the body is read before one of them is selected", () => {
    const http = post("/v1/x", "*");
    const messages = { Ask: ["bool flag"], Other: ["bool flag", "string name"] };
    const one = { input: "Ask", output: "Ask", http };
    expect(routesOf(messages, { One: one, Two: { ...one, input: "Other", selectedBy: "flag" } })).toThrow(
      "test.v1.TestService/One shares its route with a method that has other fields",
    );
  });
});
