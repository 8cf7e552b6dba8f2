import { expect, test } from "vitest";
import { expectNoFailures, useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf, useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { talk } from "../support/tcp.ts";
import { expectError, expectInvalid, JSON_BODY, jsonOf } from "./answers.ts";

const app = useTestApp();
const key = useTestKey(app);
expectNoFailures(app);

test.each([
  ["POST /v1/generate", "application/json", 400],
  ["POST /vx.v1.MeService/GetMe", "application/proto", 200],
  ["POST /grpc.health.v1.Health/Check", "application/proto", 200],
])("%s without headers about its body has an empty body", async (line, type, status) => {
  const headers = ["host: vx", `authorization: Bearer ${key.secret}`, `content-type: ${type}`, "connection: close"];
  const { text } = await talk(app.url, `${[`${line} HTTP/1.1`, ...headers].join("\r\n")}\r\n\r\n`);
  expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
});

const post = (path: string, body: string | Uint8Array) =>
  sendHttp1(app.url, { path, headers: { ...JSON_BODY, ...bearer(key.secret) }, body });
const generate = (body: string | Uint8Array) => post("/v1/generate", body);

const valid = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';

test.each([
  ["without changes", valid],
  ["with space around everything", ` \t\r\n${valid.replaceAll(/([:,[\]{}])/g, " $1\n")} `],
  ["after a byte order mark", `\ufeff${valid}`],
  ["with escapes in names", valid.replace("model", "mod\\u0065l")],
  ["with null for absent fields", valid.replace("{", '{"max_tokens":null,"stop":null,"stream":null,')],
  ["with JSON names", valid.replace("{", '{"maxTokens":5,')],
  ["with a number as a string", valid.replace("{", '{"max_tokens":"5","temperature":"0.5",')],
  ["with whole numbers in other forms", valid.replace("{", '{"max_tokens":1.0e1,"temperature":2E0,')],
])("a body %s is accepted", async (_name, body) => {
  // It is parsed, and fails later.
  expectError(await generate(body), "model_not_found", "model");
});

test("an empty body is an empty object", async () => {
  const { details } = expectError(await generate(""), "invalid_argument", "model");
  expect(JSON.stringify(details)).toContain('"messages"');
  expectError(await generate("{}"), "invalid_argument", "model");
});

test("an empty body needs no content type", async () => {
  const { id } = await createTestKey(operatorOf(app), { accountId: key.accountId });
  const answer = await sendHttp1(app.url, { path: `/v1/keys/${id}:revoke`, headers: bearer(key.secret), body: "" });
  expect(jsonOf(answer).api_key).toMatchObject({ id, state: "revoked" });
});

test.each([
  ['{"modle":"m"}', "modle"],
  ['{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","contents":"b"}]}', "messages[1].contents"],
  ['{"messages":[{},{},{},{"a":{"b":1}}]}', "messages[3].a"],
  ['{"__proto__":{"model":"m"}}', "__proto__"],
  ['{"constructor":1}', "constructor"],
  ['{"messages":[{"__proto__":{"role":"user"}}]}', "messages[0].__proto__"],
  ['{"toString":1}', "toString"],
  ['{"$typeName":"vx.v1.Message"}', "$typeName"],
  ['{"Model":"m"}', "Model"],
  ['{"":1}', ""],
])("%s is rejected with the name of the unknown field", async (body, field) => {
  const { message } = expectError(await generate(body), "invalid_argument", field === "" ? null : field);
  expect(message).toContain("is not a field of this request");
});

test.each([
  ['{"model":1}', "model"],
  ['{"messages":{}}', "messages"],
  ['{"messages":[1]}', "messages[0]"],
  ['{"messages":[null]}', "messages[0]"],
  ['{"messages":[[]]}', "messages[0]"],
  ['{"stop":[1]}', "stop[0]"],
  ['{"stop":[null]}', "stop[0]"],
  ['{"max_tokens":"x"}', "max_tokens"],
  ['{"max_tokens":1.5}', "max_tokens"],
  ['{"temperature":1e400}', "temperature"],
  ['{"temperature":"NaN"}', "temperature"],
  ['{"temperature":"Infinity"}', "temperature"],
  ['{"stream":"true"}', "stream"],
])("%s is rejected with the name of the field of the wrong type", async (body, field) => {
  const rest = ['"model":"m"', '"messages":[{"role":"user","content":""}]'].filter(
    (one) => !body.startsWith(`{${one.slice(0, 8)}`),
  );
  expectError(await generate(body.replace("{", `{${rest.join(",")},`)), "invalid_argument", field);
});

test("a field that is given under both of its names is rejected", async () => {
  expectError(await generate('{"max_tokens":1,"maxTokens":1}'), "invalid_argument", "maxTokens");
});

test.each([
  ["a name twice", '{"model":"a","model":"a"}', /"model".* twice/],
  ["a name twice, once escaped", '{"model":"a","mode\\u006c":"b"}', /"model".* twice/],
  ["a nested name twice", '{"messages":[{"role":"user","role":"user"}]}', /"role".* twice/],
  ["stream twice", '{"stream":true,"stream":false}', /"stream".* twice/],
  ["NaN", '{"temperature":NaN}', /valid JSON/],
  ["Infinity", '{"temperature":-Infinity}', /valid JSON/],
  ["a leading zero", '{"max_tokens":01}', /valid JSON/],
  ["a leading plus", '{"max_tokens":+1}', /valid JSON/],
  ["a hexadecimal number", '{"max_tokens":0x1}', /valid JSON/],
  ["a bare minus", '{"max_tokens":-}', /valid JSON/],
  ["half a surrogate pair", '{"model":"\\ud800"}', /surrogate/],
  ["the second half of a surrogate pair", '{"model":"\\udc00x"}', /surrogate/],
  ["half a surrogate pair as a name", '{"\\ud800":1}', /surrogate/],
  ["a control character", '{"model":"a\u0001"}', /valid JSON/],
  ["a line break in a string", '{"model":"a\nb"}', /valid JSON/],
  ["a wrong escape", '{"model":"\\x41"}', /valid JSON/],
  ["a short escape", '{"model":"\\u12"}', /valid JSON/],
  ["single quotes", "{'model':'m'}", /valid JSON/],
  ["a comment", '{/**/"model":"m"}', /valid JSON/],
  ["a comma at the end", '{"model":"m",}', /valid JSON/],
  ["a comma at the end of a list", '{"messages":[{},]}', /must be an object/],
  ["a missing comma", '{"model":"m" "stop":[]}', /valid JSON/],
  ["text after the end", '{"model":"m"}x', /after the end/],
  ["two objects", "{}{}", /after the end/],
  ["a list", "[]", /must be an object/],
  ["a string", '"x"', /must be an object/],
  ["null", "null", /must be an object/],
  ["only white space", " ", /must be an object/],
  ["a truncated string", '{"model":"m', /not terminated/],
  ["a string truncated after a backslash", '{"model":"m\\"', /not terminated/],
  ["a truncated literal", '{"stream":tru}', /valid JSON|true or false/],
  ["a byte order mark alone", "\ufeff", /must be an object/],
  ["a second byte order mark", "\ufeff\ufeff{}", /must be an object/],
  ["a NUL", "\u0000", /must be an object/],
  ["objects in objects, 100,000 deep", '{"a":'.repeat(100_000), /not a field/],
  ["lists in lists, 100,000 deep", "[".repeat(100_000), /must be an object/],
  ["a deep value beside stream", `{"stream":true,"messages":${"[".repeat(100_000)}`, /must be an object/],
  ["deep messages", `{"messages":${"[".repeat(100_000)}`, /must be an object/],
])("%s is rejected", async (_name, body, message) => {
  expect(expectInvalid(await generate(body)).message).toMatch(message);
});

test.each<[string, number[]]>([
  ["an invalid first byte", [0xff]],
  ["an overlong slash", [0xc0, 0xaf]],
  ["a surrogate as bytes", [0xed, 0xa0, 0x80]],
  ["a truncated character", [0xe2, 0x82]],
  ["a character above U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
])("%s is rejected as invalid UTF-8", async (_name, bytes) => {
  const body = Buffer.concat([Buffer.from('{"model":"'), Buffer.from(bytes), Buffer.from('"}')]);
  expect(expectError(await generate(body), "invalid_argument").message).toMatch(/UTF-8/);
});

test("UTF-16 is rejected", async () => {
  expectError(await generate(Buffer.from(`\ufeff${valid}`, "utf16le")), "invalid_argument");
});

test("a string keeps every character", async () => {
  const name = 'ä😀"\\/\u2028 e\u0301 __proto__';
  expect(jsonOf(await post("/v1/keys", JSON.stringify({ name }))).api_key).toMatchObject({ name });
  const escaped = [...name].flatMap((c) => c.split("")).map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  expect(jsonOf(await post("/v1/keys", `{"name":"${escaped.join("")}"}`)).api_key).toMatchObject({ name });
});

const expiring = (expires_at: unknown) => post("/v1/keys", JSON.stringify({ name: "x", expires_at }));

test.each([
  ...["tomorrow", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "", 5, {}, [], true],
  // Dates that do not exist.
  ...["2099-02-29", "2096-02-30", "2099-04-31", "2099-06-00"].map((date) => `${date}T00:00:00Z`),
])("the timestamp %j is rejected with the name of the field", async (moment) => {
  expectError(await expiring(moment), "invalid_argument", "expires_at");
});

test("the error of a timestamp without a zone shows the right form", async () => {
  expect(expectError(await expiring("2099-01-01T00:00:00"), "invalid_argument", "expires_at").message).toBe(
    'expires_at: must be a time with its zone, such as "2026-01-31T12:00:00Z"',
  );
});

test.each([
  ...["2096-02-29", "2099-04-30", "2099-12-31", "2099-01-01"].map((date) => [`${date}T00:00:00Z`, `${date}T00:00:00Z`]),
  ["2099-01-01T01:00:00+01:00", "2099-01-01T00:00:00Z"],
  ["2099-01-01T00:00:00.000000000Z", "2099-01-01T00:00:00Z"],
])("the timestamp %s is accepted", async (moment, shown) => {
  expect(jsonOf(await expiring(moment)).api_key).toMatchObject({ expires_at: shown });
});

test.each(["GET /v1/me", "GET /v1/keys", "DELETE /v1/keys/key_x"])("%s rejects a body", async (address) => {
  const [method, path] = address.split(" ") as [string, string];
  for (const body of ["{}", "x", " "]) {
    const headers = { ...JSON_BODY, ...bearer(key.secret), "content-length": String(body.length) };
    const answer = await sendHttp1(app.url, { method, path, headers, body });
    expect(expectError(answer, "invalid_argument").message).toMatch(/does not take a request body/);
  }
});
