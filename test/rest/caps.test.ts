import { expect, test } from "vitest";
import { useMetered, WIDE_MODEL } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { started } from "../support/started.ts";
import { expectError, JSON_BODY, jsonOf } from "./answers.ts";

const metered = useMetered();
const key = started(() => metered.payer(1_000_000n));

const ASTRAL = "\u{1f600}";
const said = (content: string) => ({ role: "user", content });
const hello = said("hello");

const post = (path: string, body: string) =>
  sendHttp1(metered.app.url, { path, headers: { ...JSON_BODY, ...bearer(key.secret) }, body });

const bodyOf = (fields: object) => JSON.stringify({ model: WIDE_MODEL, messages: [hello], ...fields });

/** Every half of a surrogate pair as an escape. */
const escaped = (text: string) => text.replaceAll(/[\ud800-\udfff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);

/** The upstream gets these fields of the request, and the caller the reply. */
async function expectSent(body: string, sent: object): Promise<void> {
  const before = metered.upstream.calls.length;
  const answer = await post("/v1/generate", body);
  expect(answer.status, answer.body.toString("utf8", 0, 1_000)).toBe(200);
  expect(answer.body.toString()).toContain("world");
  expect(metered.upstream.calls).toHaveLength(before + 1);
  const received = metered.upstream.calls.at(-1)?.body ?? {};
  for (const [name, value] of Object.entries(sent))
    expect(JSON.stringify(received[name]) === JSON.stringify(value), name).toBe(true);
}

/** A field names the error, and nothing is sent, held or charged. */
async function expectRefused(body: string, field: string): Promise<void> {
  const before = [await metered.account(key), metered.upstream.calls.length];
  const { message } = expectError(await post("/v1/generate", body), "invalid_argument", field);
  expect(message).toContain(field);
  expect([await metered.account(key), metered.upstream.calls.length]).toEqual(before);
}

test.each<[string, object]>([
  ["200 messages", { messages: Array(200).fill(hello) }],
  ["every role", { messages: ["system", "user", "assistant"].map((role) => ({ role, content: "a" })) }],
  ["400,000 characters of four bytes", { messages: [said(ASTRAL.repeat(400_000))] }],
  ["max_tokens 1", { max_tokens: 1 }],
  ["max_tokens 32,000", { max_tokens: 32_000 }],
  ["temperature 0", { temperature: 0 }],
  ["temperature 2", { temperature: 2 }],
  ["four stops of 200 characters", { stop: Array(4).fill(ASTRAL.repeat(200)) }],
])("%s reach the upstream", async (_name, fields) => {
  await expectSent(bodyOf(fields), fields);
});

test.each([
  ["no message", { messages: [] }, "messages"],
  ["201 messages", { messages: Array(201).fill(hello) }, "messages"],
  ["another role", { messages: [hello, { role: "function", content: "" }] }, "messages[1].role"],
  ["no role", { messages: [{ content: "" }] }, "messages[0].role"],
  ["no content", { messages: [hello, { role: "user" }] }, "messages[1].content"],
  ["content that is null", { messages: [{ role: "user", content: null }] }, "messages[0].content"],
  ["400,001 characters", { messages: [hello, said("x".repeat(400_001))] }, "messages[1].content"],
  ["max_tokens 0", { max_tokens: 0 }, "max_tokens"],
  ["max_tokens -1", { max_tokens: -1 }, "max_tokens"],
  ["max_tokens 32,001", { max_tokens: 32_001 }, "max_tokens"],
  ["temperature -0.1", { temperature: -0.1 }, "temperature"],
  ["temperature 2.1", { temperature: 2.1 }, "temperature"],
  ["five stops", { stop: Array(5).fill("x") }, "stop"],
  ["an empty stop", { stop: ["x", ""] }, "stop[1]"],
  ["a stop of 201 characters", { stop: [ASTRAL.repeat(201)] }, "stop[0]"],
  ["a model of 201 characters", { model: "m".repeat(201) }, "model"],
])("%s: the refusal names the field", async (_name, fields, field) => {
  await expectRefused(bodyOf(fields), field);
});

test("escaped characters count as the ones they stand for", async () => {
  const messages = [said(ASTRAL.repeat(400_000))];
  await expectSent(escaped(bodyOf({ messages })), { messages });
  await expectRefused(escaped(bodyOf({ messages: [said(ASTRAL.repeat(400_001))] })), "messages[0].content");
});

test("-0 is the temperature 0", async () => {
  await expectSent(bodyOf({}).replace("{", '{"temperature":-0,'), { temperature: 0 });
});

test("the error lists every invalid field, the first one as param", async () => {
  const fields = { model: "", max_tokens: 0, temperature: 3, messages: [{ role: "x", content: "" }, hello] };
  const { details } = expectError(await post("/v1/generate", bodyOf(fields)), "invalid_argument", "model");
  const { field_violations: violations } = details[1] as unknown as { field_violations: { field: string }[] };
  const names = violations.map(({ field }) => field).sort();
  expect(names).toEqual(["max_tokens", "messages[0].role", "model", "temperature"]);
});

test("a name of 100 characters is accepted", async () => {
  const name = ASTRAL.repeat(100);
  expect(jsonOf(await post("/v1/keys", JSON.stringify({ name }))).api_key).toMatchObject({ name });
});
