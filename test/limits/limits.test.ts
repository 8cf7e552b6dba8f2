import { describe, expect, test } from "vitest";
import { anthropic } from "../support/anthropic.ts";
import { post as postJson, sendAnyJson } from "../support/any-json.ts";
import type { TestKey } from "../support/fixtures.ts";
import { limitedPayer as createLimitedPayer, type LimitInit } from "../support/limited-payer.ts";
import { METERED_SURFACES, MODEL, running, SANDBOX_MODEL, useMetered } from "../support/metered.ts";
import { openAi } from "../support/openai.ts";

// An input token costs 1 micro, an output token 2.
const metered = useMetered();
const own = { model: SANDBOX_MODEL, messages: [{ role: "user", content: "hi" }] };
/** Holds 46 micros or 36 tokens if they fit, otherwise 29 or 19, and uses at most 19 or 15. */
const CALL = { model: MODEL, messages: [{ role: "user" as const, content: "Say hello to the world" }], max_tokens: 10 };

const limitedPayer = (...limits: LimitInit[]) => createLimitedPayer(metered, limits);
const generate = (key: TestKey, body: object, headers = {}) => postJson(metered.app, key, "/v1/generate", body, headers);

async function limitsOf({ secret }: TestKey, query = "") {
  const { body } = await sendAnyJson(metered.app.url, { verb: "GET", path: `/v1/limits${query}`, secret });
  return body.limits;
}

const REFUSALS: readonly [limit: LimitInit, status: number, code: string][] = [
  [{ metric: "cost", window: "month", amount: 5n }, 402, "budget_exceeded"],
  [{ metric: "tokens", window: "day", amount: 5n }, 429, "token_limit_exceeded"],
  [{ metric: "generations", window: "total", amount: 0n }, 429, "generation_limit_exceeded"],
  [{ metric: "concurrent", window: "", amount: 0n }, 429, "concurrency_limit_reached"],
];

// test/protocols/limits.test.ts has the other forms of a call.
test.each(METERED_SURFACES.filter(([path]) => path !== "/v1/generate"))(
  "POST %s %o is refused by every kind of limit, in the form of its API",
  async (path, body) => {
    for (const [limit, status, code] of REFUSALS) {
      const key = await limitedPayer(limit);
      const { header, json, ...answer } = await postJson(metered.app, key, path, body);
      expect({ status: answer.status, code: json.error.code, retry: header("x-should-retry") }).toEqual({
        status,
        code,
        retry: "false",
      });
      const details = JSON.stringify(json.error.details);
      for (const name of ["limit_id", "spent", "held", "needed"]) expect(details).toContain(`"${name}"`);
      expect(await metered.rows(key)).toEqual([]);
    }
  },
);

test("a refusal only by running calls says when to retry; one by a used window when it resets", async () => {
  const key = await limitedPayer({ metric: "tokens", window: "day", amount: 60n });
  const { end } = await running(metered, () => generate(key, { ...CALL, max_tokens: 20 }));
  const waiting = await generate(key, { ...CALL, max_tokens: 40 });
  expect([waiting.status, waiting.header("x-should-retry")]).toEqual([429, "true"]);
  expect(Number(waiting.header("retry-after"))).toBeLessThanOrEqual(5);
  expect((await end()).status).toBe(200);
  const used = await generate(key, { ...CALL, max_tokens: 50 });
  expect([used.header("x-should-retry"), used.header("retry-after")]).toEqual(["false", null]);
  const tomorrow = new Date(Math.floor(Date.now() / 86_400_000 + 1) * 86_400_000).toISOString();
  expect(used.json.error.message).toContain(`It resets at ${tomorrow}`);
});

test("a call refused by a used minute can be repeated in the next one", async () => {
  const key = await limitedPayer({ metric: "generations", window: "minute", amount: 1n });
  const both = await Promise.all([0, 1].map(() => generate(key, own)));
  const refused = both.find(({ status }) => status === 429) ?? (await generate(key, own));
  expect(refused.header("x-should-retry")).toBe("true");
  expect(Number(refused.header("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(Number(refused.header("retry-after"))).toBeLessThanOrEqual(60);
});

type Ask = (key: TestKey, options: { fetch: typeof fetch; maxRetries: number }) => Promise<unknown>;
const SDKS: readonly [name: string, ask: Ask][] = [
  ["OpenAI", async (key, options) => await openAi(metered.app, key, options).chat.completions.create(CALL)],
  ["Anthropic", async (key, options) => await anthropic(metered.app, key, options).messages.create(CALL)],
];

describe.each(SDKS)("the SDK of %s, with its default retries,", (_, ask) => {
  /** Records the statuses of all responses. After a refusal, it waits for the function and the SDK does not. */
  function recorded(refused: () => Promise<unknown> = async () => undefined) {
    const statuses: number[] = [];
    const recording: typeof fetch = async (...request) => {
      const { status, headers, body } = await fetch(...request);
      statuses.push(status);
      if (status !== 200) await refused();
      return new Response(body, { status, headers: [...headers, ["retry-after-ms", "1"]] });
    };
    return { statuses, options: { fetch: recording, maxRetries: 2 } };
  }

  test.each<[number, LimitInit | undefined]>([
    [429, { metric: "concurrent", amount: 1n }],
    [402, { metric: "cost", window: "month", amount: 60n }],
    [429, { metric: "tokens", window: "month", amount: 45n }],
    [402, undefined],
  ])("repeats a call until the running calls that refuse it have ended: %i %o", async (status, limit) => {
    const key = await (limit ? limitedPayer(limit) : metered.payer(60n));
    const { end } = await running(metered, () => generate(key, CALL));
    const { statuses, options } = recorded(end);
    await ask(key, options);
    expect(statuses).toEqual([status, 200]);
  });

  test.each<[number, LimitInit]>([
    [429, { metric: "generations", window: "month", amount: 1n }],
    [402, { metric: "cost", window: "month", amount: 40n }],
    [429, { metric: "tokens", window: "month", amount: 30n }],
  ])("does not repeat a call that is refused until the next window: %i %o", async (status, limit) => {
    const key = await limitedPayer(limit);
    const { statuses, options } = recorded();
    await ask(key, options);
    const error = await ask(key, options).catch((thrown: unknown) => thrown);
    expect(statuses).toEqual([200, status]);
    expect(error).toMatchObject({ status });
    if (status === 429) expect((error as Error).constructor.name).toBe("RateLimitError");
  });
});

test("the output limit of a call is lowered to what the limits leave, at least 64 tokens", async () => {
  const limits: LimitInit[] = [
    { metric: "tokens", window: "day", amount: 200n },
    { metric: "cost", window: "day", amount: 300n },
  ];
  const answer = await generate(await limitedPayer(...limits), own);
  expect(answer.status).toBe(200);
  const lowered = Number(answer.header("x-vx-max-tokens"));
  expect(lowered).toBeGreaterThanOrEqual(64);
  expect(lowered).toBeLessThan(150);
  const low = await limitedPayer({ metric: "tokens", window: "day", amount: 60n });
  expect((await generate(low, own)).json.error.code).toBe("token_limit_exceeded");
});

test("a quote names the limit that would refuse the call, and the lowered output limit", async () => {
  const key = await limitedPayer({ metric: "tokens", window: "day", amount: 200n });
  const quote = async (body: object) => (await postJson(metered.app, key, "/v1/generate:quote", body)).json;
  const fitting = await quote(own);
  expect(fitting).toMatchObject({ fits: true, refusal: "", limit_id: "" });
  expect(fitting.max_tokens).toBeLessThan(200);
  const [limit] = await limitsOf(key);
  const refused = { fits: false, refusal: "token_limit_exceeded", limit_id: limit.id };
  expect(await quote({ ...own, max_tokens: 400 })).toMatchObject(refused);
  expect((await limitsOf(key))[0]).toMatchObject({ held: 0, spent: 0 });
});

test("a replay takes nothing", async () => {
  const key = await limitedPayer({ metric: "generations", window: "day", amount: 1n });
  for (let i = 0; i < 2; i++) expect((await generate(key, own, { "idempotency-key": "once" })).status).toBe(200);
  expect((await limitsOf(key))[0]).toMatchObject({ spent: 1, remaining: 0 });
});

test("GET /v1/limits lists every limit with its use, and headers announce those of the minute", async () => {
  const key = await limitedPayer(
    { metric: "tokens", window: "minute", amount: 10_000n },
    { metric: "tokens", window: "minute", amount: 5_000n, model: SANDBOX_MODEL },
    { metric: "cost", window: "month", amount: 900_000n, per: "user" },
  );
  const { header, json } = await generate(key, { ...own, max_tokens: 10, user: "ada" });
  const tokens = json.usage.input_tokens + json.usage.output_tokens;
  expect(header("ratelimit-policy")).toBe('"rpm";q=1000000;w=60, "tokens";q=5000;w=60');
  expect(header("ratelimit")).toMatch(/^"rpm";r=\d+;t=\d+, "tokens";r=4\d\d\d;t=\d+$/);
  expect(header("x-ratelimit-limit-tokens")).toBe("5000");
  expect(header("x-ratelimit-remaining-tokens")).toMatch(/^4\d\d\d$/);
  expect(header("x-ratelimit-reset-tokens")).toMatch(/^\d+s$/);
  expect(await limitsOf(key, "?user=ada")).toMatchObject([
    { metric: "cost", per: "user", spent: json.usage.cost_micros, owner: "account", owner_id: key.accountId },
    { metric: "tokens", model: "", spent: tokens, held: 0, remaining: 10_000 - tokens },
    { metric: "tokens", model: SANDBOX_MODEL, spent: tokens, remaining: 5_000 - tokens },
    { id: "", metric: "requests", window: "minute", amount: 1_000_000, spent: 1, owner: "plan" },
    { id: "", metric: "active_keys", amount: 100, held: 1, owner: "plan", owner_id: "tests" },
  ]);
  expect((await limitsOf(key))[0]).toMatchObject({ spent: 0, remaining: 900_000 });
});

test("operators set, raise and remove limits; a change holds from the next call", async () => {
  const key = await metered.payer(1_000_000n);
  const owner = { case: "keyId", value: key.id } as const;
  const limit = { metric: "generations", window: "day", amount: 0n };
  const status = async () => (await generate(key, own)).status;
  const set = await metered.operator.setLimit({ owner, limit });
  expect(await status()).toBe(429);
  const temporaryUntil = { seconds: BigInt(Math.floor(Date.now() / 1000) + 60), nanos: 0 };
  await metered.operator.setLimit({ owner, limit: { ...limit, temporaryAmount: 1n, temporaryUntil } });
  expect([await status(), await status()]).toEqual([200, 429]);
  await metered.operator.removeLimit({ owner, limitId: set.limit?.id ?? "" });
  expect(await status()).toBe(200);
  const { events } = await metered.operator.listOperatorEvents({ target: key.id });
  expect(events.map(({ method }) => method)).toEqual(["RemoveLimit", "SetLimit", "SetLimit", "CreateKey"]);
});

test.each([
  [{ metric: "concurrent", window: "day", amount: 1n }, "limit.window"],
  [{ metric: "cost", window: "", amount: 1n }, "limit.window"],
  [{ metric: "cost", window: "day", amount: 1n, model: "unknown" }, "limit.model"],
  [{ metric: "cost", window: "day", amount: 1n, temporaryAmount: 2n }, "limit.temporary_until"],
  [{ metric: "requests", window: "minute", amount: 1n }, "limit.metric"],
  [{ metric: "cost", window: "day", amount: -1n }, "limit.amount"],
])("the limit %o is refused, and the error names %s", async (limit, field) => {
  const key = await metered.payer(0n);
  const owner = { case: "keyId", value: key.id } as const;
  await expect(metered.operator.setLimit({ owner, limit })).rejects.toThrow(field);
});
