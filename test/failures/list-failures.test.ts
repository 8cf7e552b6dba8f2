import { randomBytes } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { beforeEach, expect, test, vi } from "vitest";
import { FailureService } from "../../gen/vx/v1/failure_pb.js";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { generateKey } from "../../src/domain/credentials.ts";
import type { Lane } from "../../src/domain/lane.ts";
import { post, sendAnyJson } from "../support/any-json.ts";
import { dumpTables } from "../support/database.ts";
import { refuse, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { MODEL, SANDBOX_MODEL, useMetered } from "../support/metered.ts";
import { withinOneMinute } from "../support/minute.ts";
import { bearer, callOf, messageOf } from "../support/protocols.ts";

const metered = useMetered();
let key: TestKey;
beforeEach(async () => {
  key = await metered.payer(1_000n);
});

type Failure = Record<"time" | "key_id" | "method" | "code" | "message" | "request_id", string>;

const get = (path: string, secret = key.secret) => sendAnyJson(metered.app.url, { verb: "GET", path: `/v1/${path}`, secret });

async function list(query = "", secret = key.secret): Promise<{ failures: Failure[]; next_page_token: string }> {
  const { status, body } = await get(`failures${query}`, secret);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

/** Resolves when as many failed calls are listed, which takes a second. */
const listed = (count: number) =>
  vi.waitFor(async () => {
    const { failures } = await list();
    expect(failures).toHaveLength(count);
    return failures;
  });

const prompt = { model: MODEL, messages: [{ role: "user", content: "hi" }], max_tokens: 10 };

async function generate(body: object = {}, secret = key.secret, path = "generate") {
  const { status, header, json } = await post(metered.app, { secret }, `/v1/${path}`, { ...prompt, ...body });
  return { status, requestId: header("x-request-id"), error: json.error };
}

const ofKey = (options: Parameters<typeof createTestKey>[1]) =>
  createTestKey(metered.operator, { accountId: key.accountId, ...options });

test("refused and failed calls are listed with the error that the caller got, newest first, also while the account is suspended", async () => {
  const { accountId } = key;
  const reader = await ofKey({ scopes: ["read"] });
  const limited = await ofKey({});
  const revoked = await ofKey({});
  await metered.operator.updateKey({ keyId: limited.id, models: [SANDBOX_MODEL] });
  await metered.operator.revokeKey({ keyId: revoked.id });
  const rateLimited = await withinOneMinute(async () => {
    const { id: keyId, secret } = await ofKey({ rateLimitRpm: 1 });
    await generate({ model: SANDBOX_MODEL }, secret);
    const answer = await generate({ model: SANDBOX_MODEL }, secret);
    expect(answer.status).toBe(429);
    return { keyId, model: "", answer };
  });
  metered.upstream.next(refuse(400));
  const answers = [
    rateLimited,
    { keyId: key.id, model: MODEL, answer: await generate() },
    { keyId: key.id, model: MODEL, answer: await generate({ max_tokens: 500 }) },
    { keyId: key.id, model: "", answer: await generate({ model: "no-model" }) },
    { keyId: key.id, model: "", answer: await generate({ max_tokens: -1 }) },
    { keyId: limited.id, model: MODEL, answer: await generate({}, limited.secret) },
    { keyId: reader.id, model: "", answer: await generate({}, reader.secret) },
    { keyId: revoked.id, model: "", answer: await generate({}, revoked.secret) },
  ];
  await metered.operator.suspendAccount({ accountId, reason: "test" });
  answers.push({ keyId: key.id, model: "", answer: await generate() });
  const failures = await listed(answers.length);
  await metered.operator.resumeAccount({ accountId, reason: "test" });
  expect(answers.map(({ answer }) => [answer.status, answer.error?.code])).toEqual([
    [429, "rate_limit_exceeded"],
    [502, "upstream_error"],
    [402, "insufficient_balance"],
    [404, "model_not_found"],
    [400, "invalid_argument"],
    [403, "model_not_allowed"],
    [403, "insufficient_scope"],
    [401, "revoked_api_key"],
    [403, "account_suspended"],
  ]);
  expect(failures.toReversed()).toEqual(
    answers.map(({ keyId, model, answer }) => ({
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      key_id: keyId,
      method: "POST /v1/generate",
      model,
      upstream: "",
      status: answer.status,
      code: answer.error?.code,
      message: answer.error?.message,
      latency_ms: expect.any(Number),
      request_id: answer.requestId,
      omitted: 0,
    })),
  );
  const ofOperator = (await metered.operator.listFailures({ accountId })).failures.toReversed();
  expect(ofOperator[1]?.upstream).toMatch(/^openai 127\.0\.0\.1:\d+\/v1 fake-model$/);
  expect(ofOperator[2]?.upstream).toBe("");
});

test("a disconnect before a charge is listed as canceled; calls with a ledger entry, of other methods, and of unknown keys are not listed", async () => {
  const leave = async (body: object, isTime: () => Promise<unknown>) => {
    const left = new AbortController();
    const headers = { ...bearer(key.secret), "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify({ ...prompt, ...body }), signal: left.signal };
    const call = fetch(`${metered.app.url}/v1/generate`, init).catch(() => undefined);
    await isTime();
    left.abort();
    await call;
    await metered.settled();
  };
  const { upstream } = metered;
  const before = upstream.calls.length;
  upstream.next(silentAfter(1));
  await leave({ stream: true }, () => upstream.until(({ calls }) => calls[before]?.pieces === 1));
  expect((await generate()).status).toBe(200);
  await get("generations/gen_x");
  await generate({}, generateKey(0 as Lane, randomBytes).secret);
  upstream.next(refuse(429, { "retry-after": "2" }));
  await leave({}, () => upstream.until(({ calls }) => calls[before + 2]?.ended === "finished"));
  expect((await listed(1))[0]).toMatchObject({ status: 499, code: "canceled", model: MODEL });
  expect(await metered.rows(key)).toHaveLength(2);
});

test("calls of the compatible APIs and of RPCs are listed with their addresses", async () => {
  const paths = ["chat/completions", "messages"];
  for (const path of paths) expect((await generate({ model: "no-model" }, key.secret, path)).status).toBe(404);
  const answer = await post(metered.app, key, "/anthropic/v1/messages", { ...prompt, model: "no-model" });
  expect(answer.status).toBe(404);
  const call = callOf(metered.app);
  await call(GenerateService.method.generate, { model: "no-model", messages: prompt.messages }, key.secret);
  const methods = ["/v1/chat/completions", "/v1/messages", "/anthropic/v1/messages"].map((path) => `POST ${path}`);
  const found = await listed(4);
  expect(found.map(({ method }) => method).toReversed()).toEqual([...methods, "vx.v1.GenerateService/Generate"]);
  const { failures } = messageOf(await call(FailureService.method.listFailures, { pageSize: 1 }, key.secret));
  expect(failures).toMatchObject([{ requestId: found[0]?.request_id, method: found[0]?.method }]);
});

test("filters select calls, pages continue, and calls are counted by error and hour", async () => {
  const other = await ofKey({});
  for (const model of ["a", "b", "c"]) await generate({ model });
  await generate({ max_tokens: 500 }, other.secret);
  const failures = await listed(4);
  const messagesOf = async (query: string) => (await list(query)).failures.map(({ message }) => message);
  const messages = failures.map(({ message }) => message);
  const at = failures[1]?.time ?? "";
  for (const [query, ...range] of [
    [`?key_id=${other.id}`, 0, 1],
    [`?model=${MODEL}`, 0, 1],
    ["?code=model_not_found", 1],
    [`?code=model_not_found&key_id=${other.id}`, 4],
    [`?from=${at}`, 0, 2],
    [`?to=${at}`, 2],
  ] as const)
    expect(await messagesOf(query), query).toEqual(messages.slice(...range));
  const first = await list("?page_size=3");
  expect(first.failures).toEqual(failures.slice(0, 3));
  const second = await list(`?page_size=3&page_token=${first.next_page_token}`);
  expect(second).toEqual({ failures: failures.slice(3), next_page_token: "" });
  const stranger = await metered.payer(0n);
  expect((await list("", stranger.secret)).failures).toEqual([]);

  type Counts = { counts: { start: string; code: string; calls: number }[]; counted_from: string };
  const count = async (query: string, secret?: string): Promise<Counts> => (await get(`failures:count${query}`, secret)).body;
  // The calls may be of two hours.
  const hoursOf = (some: readonly Failure[]) => {
    const hours = Map.groupBy(some, ({ time, code }) => `${time.slice(0, 13)}:00:00Z ${code}`);
    return [...hours].map(([name, { length }]) => `${name} ${length}`).sort();
  };
  const textsOf = ({ counts }: Counts) => counts.map(({ start, code, calls }) => `${start} ${code} ${calls}`).sort();
  const from = new Date(Math.floor(Date.now() / 900_000) * 900_000 - 7_200_000);
  const range = `from=${from.toISOString()}`;
  const all = await count(`?group_by=hour&${range}`);
  expect(textsOf(all)).toEqual(hoursOf(failures));
  expect(range).toContain(all.counted_from.slice(0, 16));
  const ofOther = failures.filter((failure) => failure.key_id === other.id);
  expect(textsOf(await count(`?group_by=hour&${range}&key_id=${other.id}`))).toEqual(hoursOf(ofOther));
  expect(textsOf(await count(`?group_by=hour&${range}&model=${MODEL}`))).toHaveLength(1);
  const total = ({ counts }: Counts) => counts.reduce((sum, { calls }) => sum + calls, 0);
  expect(total(await count(`?${range}&tz=Asia/Kathmandu`))).toBe(4);
  expect(total(await count(`?${range}`, stranger.secret))).toBe(0);
  const ofOperator = await metered.operator.countFailures({ accountId: key.accountId, from: timestampFromDate(from) });
  expect(ofOperator.counts.map(({ code }) => code)).toContain("model_not_found");
});

test.each([
  [`?page_token=${Buffer.from("failures:x").toString("base64url")}`, "page_token"],
  [":count?group_by=week", "group_by"],
  [":count?from=2030-01-01T00:00:01Z", "from"],
  [":count?tz=Mars", "tz"],
  [":count?group_by=hour&from=2020-01-01T00:00:00Z", "from"],
])("GET /v1/failures%s is a 400 that names %s", async (query, param) => {
  expect(await get(`failures${query}`)).toMatchObject({ status: 400, body: { error: { param } } });
});

test("nothing of a prompt is stored, however the call fails", async () => {
  const words = "canary words of the prompt";
  const message = (content: unknown, role = "user") => ({ role, content });
  const tool = { type: "function", function: { name: "f", arguments: `{"a": "${words}` } };
  const bare = { messages: undefined, max_tokens: undefined };
  const bodies: [path: string, body: object][] = [
    ["generate", { messages: [message(words)], max_tokens: 500 }],
    ["generate", { messages: [message(words, words)] }],
    ["generate", { messages: message(words) }],
    ["generate", { messages: [message(7), message([words])] }],
    ["generate", { messages: [message(words)], stop: [words.repeat(100)] }],
    ["generate", { messages: [message(words)], max_tokens: words }],
    ["generate", { model: "no-model", messages: [message(words)] }],
    ["generate", { messages: [message(words.repeat(1_000))] }],
    ["chat/completions", { messages: [message(words, "tool")] }],
    ["chat/completions", { messages: [message([{ type: "poem", text: words }])] }],
    ["chat/completions", { messages: [{ role: "assistant", tool_calls: [{ ...tool, id: "1" }] }] }],
    ["chat/completions", { messages: [message([{ type: "image_url", image_url: { url: words } }])] }],
    ["chat/completions", { messages: [message(words)], tools: [{ type: "function", function: { name: words } }] }],
    ["chat/completions", { messages: [message(words)], tool_choice: words }],
    ["responses", { ...bare, input: [{ type: "poem", content: words }] }],
    ["responses", { ...bare, input: words, instructions: [words] }],
    ["messages", { messages: [message(words), message(words, words)] }],
    ["messages", { messages: [message([{ type: "tool_result", content: words }])] }],
    ["completions", { ...bare, prompt: { text: words } }],
    ["embeddings", { ...bare, input: [words] }],
  ];
  const { secret } = key;
  for (const [path, body] of bodies) {
    const { status } = await generate(body, secret, path);
    expect(status, JSON.stringify(body)).toBeGreaterThanOrEqual(400);
  }
  const headers = { ...bearer(secret), "content-type": "application/json" };
  for (const body of [`{"messages": "${words}`, `{"messages": ["${words}" "x"]}`, words]) {
    const response = await fetch(`${metered.app.url}/v1/generate`, { method: "POST", headers, body });
    expect(response.status).toBe(400);
  }
  metered.upstream.next(refuse(400, {}, words), refuse(400, {}, words));
  expect((await generate({ messages: [message(words)] })).status).toBe(502);
  await listed(bodies.length + 4);
  const rows = (await dumpTables(metered.app.database)).split("\n");
  const withText = (text: string) => rows.filter((row) => row.includes(text));
  expect(withText("upstream_error")).not.toEqual([]);
  expect(withText(words)).toEqual([]);
});
