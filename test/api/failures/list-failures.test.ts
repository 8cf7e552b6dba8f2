import { randomBytes } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { beforeEach, expect, test, vi } from "vitest";
import { FailureService } from "../../../gen/vx/v1/failure_pb.js";
import { GenerateService } from "../../../gen/vx/v1/generate_pb.js";
import { generateKey } from "../../../src/domain/credentials.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import { sendJson } from "../../rest/send-json.ts";
import { dumpTables } from "../../support/database.ts";
import { refuse, silentAfter } from "../../support/fake-upstreams/behaviours.ts";
import { createTestKey, type TestKey } from "../../support/fixtures.ts";
import { MODEL, SANDBOX_MODEL, useMetered } from "../../support/metered.ts";
import { withinOneMinute } from "../../support/minute.ts";
import { bearer, callOf, messageOf } from "../../support/protocols.ts";

const metered = useMetered();
let key: TestKey;
beforeEach(async () => {
  key = await metered.payer(1_000n);
});

type Failure = {
  readonly time: string;
  readonly key_id: string;
  readonly method: string;
  readonly model: string;
  readonly upstream: string;
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly latency_ms: number;
  readonly request_id: string;
  readonly omitted: number;
};
type List = { readonly failures: readonly Failure[]; readonly next_page_token: string };

async function list(query = "", secret = key.secret): Promise<List> {
  const answer = await sendJson(metered.app.url, { verb: "GET", path: `/v1/failures${query}`, secret });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body as List;
}

/** Resolves when as many failed calls are listed, which takes a second. */
const listed = (count: number, secret = key.secret) =>
  vi.waitFor(async () => {
    const { failures } = await list("", secret);
    expect(failures).toHaveLength(count);
    return failures;
  });

const prompt = { model: MODEL, messages: [{ role: "user", content: "hi" }], max_tokens: 10 };

async function generate(body: object = prompt, secret = key.secret, path = "/v1/generate") {
  const headers = { ...bearer(secret), "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`${metered.app.url}${path}`, init);
  const { error } = (await response.json()) as { error?: { code: string; message: string } };
  return { status: response.status, requestId: response.headers.get("x-request-id"), error };
}

const ofKey = (options: Parameters<typeof createTestKey>[1]) =>
  createTestKey(metered.operator, { accountId: key.accountId, ...options });

test("refused and failed calls are listed with the error that the caller got, newest first", async () => {
  const reader = await ofKey({ scopes: ["read"] });
  const limited = await ofKey({});
  const revoked = await ofKey({});
  await metered.operator.updateKey({ keyId: limited.id, models: [SANDBOX_MODEL] });
  await metered.operator.revokeKey({ keyId: revoked.id });
  const rateLimited = await withinOneMinute(async () => {
    const { id: keyId, secret } = await ofKey({ rateLimitRpm: 1 });
    await generate({ ...prompt, model: SANDBOX_MODEL }, secret);
    const answer = await generate({ ...prompt, model: SANDBOX_MODEL }, secret);
    expect(answer.status).toBe(429);
    return { keyId, model: "", answer };
  });
  metered.upstream.next(refuse(400));
  const answers = [
    rateLimited,
    { keyId: key.id, model: MODEL, answer: await generate() },
    { keyId: key.id, model: MODEL, answer: await generate({ ...prompt, max_tokens: 490 + 10 }) },
    { keyId: key.id, model: "", answer: await generate({ ...prompt, model: "no-model" }) },
    { keyId: key.id, model: "", answer: await generate({ ...prompt, max_tokens: -1 }) },
    { keyId: limited.id, model: MODEL, answer: await generate(prompt, limited.secret) },
    { keyId: reader.id, model: "", answer: await generate(prompt, reader.secret) },
    { keyId: revoked.id, model: "", answer: await generate(prompt, revoked.secret) },
  ];
  const failures = await listed(answers.length);
  expect(answers.map(({ answer }) => [answer.status, answer.error?.code])).toEqual([
    [429, "rate_limit_exceeded"],
    [502, "upstream_error"],
    [402, "insufficient_balance"],
    [404, "model_not_found"],
    [400, "invalid_argument"],
    [403, "model_not_allowed"],
    [403, "insufficient_scope"],
    [401, "revoked_api_key"],
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
  const ofOperator = await metered.operator.listFailures({ accountId: key.accountId });
  expect(ofOperator.failures.at(-2)?.upstream).toMatch(/^openai 127\.0\.0\.1:\d+\/v1 fake-model$/);
  expect(ofOperator.failures.at(-3)?.upstream).toBe("");
});

test("calls with a ledger entry, of other methods, and of unknown keys are not listed", async () => {
  const left = new AbortController();
  metered.upstream.next(silentAfter(1));
  const body = JSON.stringify({ ...prompt, stream: true });
  const headers = { ...bearer(key.secret), "content-type": "application/json" };
  const init = { method: "POST", headers, body, signal: left.signal };
  const stream = await fetch(`${metered.app.url}/v1/generate`, init);
  await stream.body?.getReader().read();
  left.abort();
  await metered.settled();
  expect((await generate()).status).toBe(200);
  await sendJson(metered.app.url, { verb: "GET", path: "/v1/generations/gen_x", secret: key.secret });
  await generate(prompt, generateKey(0 as Lane, randomBytes).secret);
  await generate({ ...prompt, model: "no-model" });
  expect((await listed(1))[0]?.code).toBe("model_not_found");
  expect(await metered.rows(key)).toHaveLength(2);
});

test("a disconnect before a charge is listed as canceled", async () => {
  const left = new AbortController();
  metered.upstream.next(refuse(429, { "retry-after": "2" }));
  const headers = { ...bearer(key.secret), "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(prompt), signal: left.signal };
  const before = metered.upstream.calls.length;
  const call = fetch(`${metered.app.url}/v1/generate`, init).catch(() => undefined);
  await metered.upstream.until(({ calls }) => calls[before]?.ended === "finished");
  left.abort();
  await call;
  expect((await listed(1))[0]).toMatchObject({ status: 499, code: "canceled", model: MODEL });
});

test("calls of the compatible APIs are listed with their addresses", async () => {
  const unknown = { ...prompt, model: "no-model" };
  const paths = ["/v1/chat/completions", "/v1/messages", "/anthropic/v1/messages"];
  for (const path of paths) expect((await generate(unknown, key.secret, path)).status).toBe(404);
  const failures = await listed(paths.length);
  expect(failures.map(({ method }) => method).toReversed()).toEqual(paths.map((path) => `POST ${path}`));
});

test("calls of gRPC, gRPC-Web and Connect are listed", async () => {
  const call = callOf(metered.app);
  const content = { model: "no-model", messages: [{ role: "user", content: "hi" }] };
  await call(GenerateService.method.generate, content, key.secret);
  const [failure] = await listed(1);
  const method = "vx.v1.GenerateService/Generate";
  expect(failure).toMatchObject({ status: 404, code: "model_not_found", method });
  const { failures } = messageOf(await call(FailureService.method.listFailures, {}, key.secret));
  expect(failures).toMatchObject([{ requestId: failure?.request_id, method }]);
});

test("filters select calls, and pages continue", async () => {
  const other = await ofKey({});
  for (const model of ["a", "b", "c"]) await generate({ ...prompt, model });
  await generate({ ...prompt, max_tokens: 500 }, other.secret);
  const failures = await listed(4);
  const codes = async (query: string) => (await list(query)).failures.map(({ message }) => message);
  const messages = failures.map(({ message }) => message);
  expect(await codes(`?key_id=${other.id}`)).toEqual(messages.slice(0, 1));
  expect(await codes(`?model=${MODEL}`)).toEqual(messages.slice(0, 1));
  expect(await codes("?code=model_not_found")).toEqual(messages.slice(1));
  expect(await codes(`?code=model_not_found&key_id=${other.id}`)).toEqual([]);
  const at = failures[1]?.time ?? "";
  expect(await codes(`?from=${at}`)).toEqual(messages.slice(0, 2));
  expect(await codes(`?to=${at}`)).toEqual(messages.slice(2));
  const first = await list("?page_size=3");
  expect(first.failures).toEqual(failures.slice(0, 3));
  const second = await list(`?page_size=3&page_token=${first.next_page_token}`);
  expect(second).toEqual({ failures: failures.slice(3), next_page_token: "" });
  const path = `/v1/failures?page_token=${Buffer.from("failures:x").toString("base64url")}`;
  expect(await sendJson(metered.app.url, { verb: "GET", path, secret: key.secret })).toMatchObject({
    status: 400,
    body: { error: { param: "page_token" } },
  });
});

test("failed calls are counted by error and hour, and each counted call is listed", async () => {
  const other = await ofKey({});
  for (const model of ["a", "b", "c"]) await generate({ ...prompt, model });
  await generate({ ...prompt, max_tokens: 500 }, other.secret);
  const failures = await listed(4);
  type Counts = { counts: { start: string; code: string; calls: number }[]; counted_from: string };
  const count = async (query = "", secret = key.secret) => {
    const path = `/v1/failures:count${query}`;
    const answer = await sendJson(metered.app.url, { verb: "GET", path, secret });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body as Counts;
  };
  // The calls may be of two hours.
  const hoursOf = (list: readonly Failure[]) => {
    const hours = Map.groupBy(list, ({ time, code }) => `${time.slice(0, 13)}:00:00Z ${code}`);
    return [...hours].map(([name, { length }]) => `${name} ${length}`).sort();
  };
  const textsOf = ({ counts }: Counts) => counts.map(({ start, code, calls }) => `${start} ${code} ${calls}`);
  const from = new Date(Math.floor(Date.now() / 900_000) * 900_000 - 7_200_000);
  const range = `from=${from.toISOString()}`;
  const all = await count(`?group_by=hour&${range}`);
  expect(textsOf(all).sort()).toEqual(hoursOf(failures));
  expect(range).toContain(all.counted_from.slice(0, 16));
  expect(textsOf(await count(`?group_by=hour&${range}&key_id=${other.id}`))).toEqual(
    hoursOf(failures.filter((failure) => failure.key_id === other.id)),
  );
  expect(textsOf(await count(`?group_by=hour&${range}&model=${MODEL}`))).toHaveLength(1);
  const total = ({ counts }: Counts) => counts.reduce((sum, { calls }) => sum + calls, 0);
  expect(total(await count(`?${range}&tz=Asia/Kathmandu`))).toBe(4);
  expect(total(await count(`?${range}`, (await metered.payer(0n)).secret))).toBe(0);
  const { accountId } = key;
  const ofOperator = await metered.operator.countFailures({ accountId, from: timestampFromDate(from) });
  expect(ofOperator.counts.map(({ code }) => code)).toContain("model_not_found");
  for (const [query, param] of [
    ["group_by=week", "group_by"],
    ["from=2030-01-01T00:00:01Z", "from"],
    ["tz=Mars", "tz"],
    ["group_by=hour&from=2020-01-01T00:00:00Z", "from"],
  ]) {
    const path = `/v1/failures:count?${query}`;
    const answer = await sendJson(metered.app.url, { verb: "GET", path, secret: key.secret });
    expect(answer, query).toMatchObject({ status: 400, body: { error: { param } } });
  }
});

test("a key of a suspended account reads the list, one without the scope read does not, and another account sees nothing", async () => {
  await metered.operator.suspendAccount({ accountId: key.accountId, reason: "test" });
  expect((await generate()).error?.code).toBe("account_suspended");
  expect(await listed(1)).toMatchObject([{ status: 403, code: "account_suspended" }]);
  await metered.operator.resumeAccount({ accountId: key.accountId, reason: "test" });
  const { secret } = await ofKey({ scopes: ["generate"] });
  expect(await sendJson(metered.app.url, { verb: "GET", path: "/v1/failures", secret })).toMatchObject({
    status: 403,
  });
  const stranger = await metered.payer(0n);
  expect((await list("", stranger.secret)).failures).toEqual([]);
  const { failures } = await metered.operator.listFailures({ accountId: key.accountId });
  expect(failures).toMatchObject([{ code: "account_suspended", keyId: key.id }]);
});

test("of a minute, 600 calls are listed and the others counted, also in memory", async () => {
  const quick = await ofKey({ rateLimitRpm: 1 });
  const send = () => generate(prompt, quick.secret);
  await send();
  const answers = await Promise.all(Array.from({ length: 660 }, send));
  const refused = answers.filter(({ status }) => status === 429).length;
  expect(refused).toBeGreaterThan(650);
  const failures = await vi.waitFor(async () => {
    const all = (await list("?page_size=1000")).failures;
    expect(all.reduce((sum, { omitted }) => sum + (omitted || 1), 0)).toBe(refused);
    return all;
  });
  const counts = failures.filter(({ omitted }) => omitted > 0);
  for (const row of counts) expect(row).toMatchObject({ code: "", message: "", key_id: "", status: 0 });
  // The calls may be of two minutes.
  const minutes = Map.groupBy(failures, ({ time }) => time.slice(0, 16));
  for (const rows of minutes.values()) {
    expect(rows.filter(({ omitted }) => omitted === 0).length).toBeLessThanOrEqual(600);
    const at = rows.findIndex(({ omitted }) => omitted > 0);
    expect([-1, rows.length - 1]).toContain(at);
  }
});

test("nothing of a prompt is stored, however the call fails", async () => {
  const words = "canary words of the prompt";
  const message = (content: unknown, role = "user") => ({ role, content });
  const tool = { type: "function", function: { name: "f", arguments: `{"a": "${words}` } };
  const bodies: [path: string, body: unknown][] = [
    ["generate", { ...prompt, messages: [message(words)], max_tokens: 500 }],
    ["generate", { ...prompt, messages: [message(words, words)] }],
    ["generate", { ...prompt, messages: message(words) }],
    ["generate", { ...prompt, messages: [message(7), message([words])] }],
    ["generate", { ...prompt, messages: [message(words)], stop: [words.repeat(100)] }],
    ["generate", { ...prompt, messages: [message(words)], max_tokens: words }],
    ["generate", { ...prompt, model: "no-model", messages: [message(words)] }],
    ["generate", { ...prompt, messages: [message(words.repeat(1_000))] }],
    ["chat/completions", { ...prompt, messages: [message(words, "tool")] }],
    ["chat/completions", { ...prompt, messages: [message([{ type: "poem", text: words }])] }],
    ["chat/completions", { ...prompt, messages: [{ role: "assistant", tool_calls: [{ ...tool, id: "1" }] }] }],
    ["chat/completions", { ...prompt, messages: [message([{ type: "image_url", image_url: { url: words } }])] }],
    ["chat/completions", { ...prompt, messages: [message(words)], tools: [{ type: "function", function: { name: words } }] }],
    ["chat/completions", { ...prompt, messages: [message(words)], tool_choice: words }],
    ["responses", { model: MODEL, input: [{ type: "poem", content: words }] }],
    ["responses", { model: MODEL, input: words, instructions: [words] }],
    ["messages", { ...prompt, messages: [message(words), message(words, words)] }],
    ["messages", { ...prompt, messages: [message([{ type: "tool_result", content: words }])] }],
    ["completions", { model: MODEL, prompt: { text: words } }],
    ["embeddings", { model: MODEL, input: [words] }],
  ];
  const { secret } = key;
  for (const [path, body] of bodies) {
    const { status } = await generate(body as object, secret, `/v1/${path}`);
    expect(status, JSON.stringify(body)).toBeGreaterThanOrEqual(400);
  }
  const headers = { ...bearer(secret), "content-type": "application/json" };
  for (const body of [`{"messages": "${words}`, `{"messages": ["${words}" "x"]}`, words]) {
    const response = await fetch(`${metered.app.url}/v1/generate`, { method: "POST", headers, body });
    expect(response.status).toBe(400);
  }
  metered.upstream.next(refuse(400, {}, words), refuse(400, {}, words));
  expect((await generate({ ...prompt, messages: [message(words)] })).status).toBe(502);
  await listed(bodies.length + 4);
  const rows = (await dumpTables(metered.app.database)).split("\n");
  const withText = (text: string) => rows.filter((row) => row.includes(text));
  expect(withText("upstream_error")).not.toEqual([]);
  expect(withText(words)).toEqual([]);
});
