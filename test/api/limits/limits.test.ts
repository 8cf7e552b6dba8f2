import { describe, expect, test } from "vitest";
import { GenerateService } from "../../../gen/vx/v1/generate_pb.js";
import { anthropic } from "../../support/anthropic.ts";
import type { TestKey } from "../../support/fixtures.ts";
import {
  limitedPayer as createLimitedPayer,
  LARGE_CALL,
  type LimitInit,
  MAX_TOKENS,
  ONE_LARGE_CALL,
  ONE_SLOW_CALL,
  SLOW_CALL,
} from "../../support/limited-payer.ts";
import { SANDBOX_MODEL, useOwnMetered } from "../../support/metered.ts";
import { openAi } from "../../support/openai.ts";
import { bearer, callOf } from "../../support/protocols.ts";

// An input token costs 1 micro, an output token 2.

const metered = useOwnMetered({ servers: 2, env: { VX_TOP_UP_URL: "https://pay.example/top-up" } });

const limitedPayer = (limits: readonly LimitInit[], balance?: bigint) => createLimitedPayer(metered, limits, balance);

type Body = Readonly<Record<string, unknown>>;

const messages = [{ role: "user", content: "hi" }];
const own = { model: SANDBOX_MODEL, messages };

async function post(path: string, key: TestKey, body: Body, server = 0) {
  const response = await fetch(`${metered.apps[server]?.url}${path}`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, json: text.startsWith("{") ? JSON.parse(text) : undefined };
}

async function limitsOf(key: TestKey, query = "") {
  const response = await fetch(`${metered.app.url}/v1/limits${query}`, { headers: bearer(key.secret) });
  expect(response.status).toBe(200);
  const { limits } = (await response.json()) as { limits: Record<string, unknown>[] };
  return limits;
}

const SURFACES: readonly [path: string, body: Body][] = [
  ["/v1/generate", { ...own, max_tokens: 10 }],
  ["/v1/generate", { ...own, max_tokens: 10, stream: true }],
  ["/v1/chat/completions", { ...own, max_tokens: 10 }],
  ["/v1/chat/completions", { ...own, max_tokens: 10, stream: true }],
  ["/v1/completions", { model: SANDBOX_MODEL, prompt: "Once", max_tokens: 10 }],
  ["/v1/responses", { model: SANDBOX_MODEL, input: "hi", max_output_tokens: 10 }],
  ["/v1/messages", { ...own, max_tokens: 10 }],
  ["/v1/messages", { ...own, max_tokens: 10, stream: true }],
];

const REFUSALS: readonly [limit: LimitInit, status: number, code: string][] = [
  [{ metric: "cost", window: "month", amount: 5n }, 402, "budget_exceeded"],
  [{ metric: "tokens", window: "day", amount: 5n }, 429, "token_limit_exceeded"],
  [{ metric: "generations", window: "total", amount: 0n }, 429, "generation_limit_exceeded"],
  [{ metric: "concurrent", window: "", amount: 0n }, 429, "concurrency_limit_reached"],
];

describe.each(REFUSALS)("a call that does not fit the limit %o", (limit, status, code) => {
  test.each(SURFACES)("is refused by POST %s %o, in the form of its API", async (path, body) => {
    const key = await limitedPayer([limit]);
    const answer = await post(path, key, body);
    expect({ status: answer.status, retry: answer.headers.get("x-should-retry") }).toEqual({
      status,
      retry: "false",
    });
    expect(answer.json.error).toMatchObject({ code });
    const details = JSON.stringify(answer.json.error.details);
    for (const name of ["limit_id", "spent", "held", "needed"]) expect(details).toContain(`"${name}"`);
    expect(await metered.rows(key)).toEqual([]);
  });

  test("is refused over Connect, with the limit in its details", async () => {
    const key = await limitedPayer([limit]);
    const request = { model: SANDBOX_MODEL, messages: [{ role: "user", content: "hi" }], maxTokens: 10 };
    const outcome = await callOf(metered.app)(GenerateService.method.generate, request, key.secret);
    expect(outcome).toMatchObject({
      ok: false,
      reason: code,
      metadata: { metric: limit.metric, amount: String(limit.amount), spent: "0", held: "0" },
    });
    expect(outcome.ok ? [] : outcome.details.map((name) => name.split(".").at(-1))).toContain("QuotaFailure");
  });
});

test("embeddings count against limits", async () => {
  const key = await limitedPayer([{ metric: "tokens", window: "hour", amount: 2n }]);
  const answer = await post("/v1/embeddings", key, { model: "vectors", input: "a long text" });
  expect(answer.json.error).toMatchObject({ code: "token_limit_exceeded" });
});

test("a refusal only by running calls says when to retry; one by a used window when it resets", async () => {
  const key = await limitedPayer([{ metric: "tokens", window: "day", amount: 60n }]);
  const slow = post("/v1/generate", key, {
    ...own,
    messages: [{ role: "user", content: "[[tokens=2 delay_ms=300]] hi" }],
    max_tokens: 10,
  });
  await expect.poll(async () => (await limitsOf(key))[0]?.held).not.toBe(0);
  const waiting = await post("/v1/generate", key, { ...own, max_tokens: 40 }, 1);
  expect(waiting.status).toBe(429);
  expect(waiting.headers.get("x-should-retry")).toBe("true");
  expect(Number(waiting.headers.get("retry-after"))).toBeLessThanOrEqual(5);
  expect((await slow).status).toBe(200);
  const used = await post("/v1/generate", key, { ...own, max_tokens: 55 });
  expect(used.headers.get("x-should-retry")).toBe("false");
  expect(used.headers.get("retry-after")).toBeNull();
  const tomorrow = new Date(Math.floor(Date.now() / 86_400_000 + 1) * 86_400_000).toISOString();
  expect(used.json.error.message).toContain(`It resets at ${tomorrow}`);
});

test("a call refused by a used minute can be repeated in the next one", async () => {
  const key = await limitedPayer([{ metric: "generations", window: "minute", amount: 1n }]);
  const both = await Promise.all([0, 1].map((server) => post("/v1/generate", key, own, server)));
  const refused = both.find(({ status }) => status === 429) ?? (await post("/v1/generate", key, own));
  expect(refused.headers.get("x-should-retry")).toBe("true");
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
});

/** An official SDK with its default retries, and the statuses of all responses that it got. */
type Sdk = {
  readonly statuses: number[];
  readonly ask: (content: string) => Promise<unknown>;
};

const SDKS: readonly [name: string, open: (key: TestKey) => Sdk][] = [
  [
    "OpenAI",
    (key) => {
      const { statuses, ...options } = recorded();
      const client = openAi(metered.app, key, options);
      const ask = (content: string) => client.chat.completions.create(requestOf(content));
      return { statuses, ask };
    },
  ],
  [
    "Anthropic",
    (key) => {
      const { statuses, ...options } = recorded();
      const client = anthropic(metered.app, key, options);
      return { statuses, ask: (content) => client.messages.create(requestOf(content)) };
    },
  ],
];

const requestOf = (content: string) => ({
  model: SANDBOX_MODEL,
  max_tokens: MAX_TOKENS,
  messages: [{ role: "user" as const, content }],
});

function recorded() {
  const statuses: number[] = [];
  const recording: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    statuses.push(response.status);
    return response;
  };
  return { statuses, fetch: recording, maxRetries: 2 };
}

describe.each(SDKS)("the SDK of %s, with its default retries,", (_, open) => {
  /** The statuses of two calls at the same time, of which one waits for the other. */
  async function waiting(key: TestKey): Promise<number[]> {
    const { ask, statuses } = open(key);
    await Promise.all([ask(SLOW_CALL), ask(SLOW_CALL)]);
    return statuses;
  }

  test("repeats a call until the running calls that refuse it have ended", async () => {
    const keys = await Promise.all([...ONE_SLOW_CALL.map((limit) => limitedPayer([limit])), limitedPayer([], 400n)]);
    const outcomes = await Promise.all(keys.map(waiting));
    for (const [i, refusal] of [429, 402, 429, 402].entries()) {
      expect(outcomes[i]?.at(0)).toBe(refusal);
      expect(outcomes[i]?.filter((status) => status === 200)).toHaveLength(2);
    }
  });

  test.each(ONE_LARGE_CALL)("does not repeat a call that is refused until the next window: %o", async (limit) => {
    const { ask, statuses } = open(await limitedPayer([limit]));
    await ask(LARGE_CALL);
    const status = limit.metric === "cost" ? 402 : 429;
    const error = await Promise.resolve(ask(LARGE_CALL)).catch((thrown: unknown) => thrown);
    expect(statuses).toEqual([200, status]);
    expect(error).toMatchObject({ status });
    if (status === 429) expect((error as Error).constructor.name).toBe("RateLimitError");
  });
});

test("the output limit of a call is lowered to what the limits leave, at least 64 tokens", async () => {
  const key = await limitedPayer([
    { metric: "tokens", window: "day", amount: 200n },
    { metric: "cost", window: "day", amount: 300n },
  ]);
  const answer = await post("/v1/generate", key, own);
  expect(answer.status).toBe(200);
  const lowered = Number(answer.headers.get("x-vx-max-tokens"));
  expect(lowered).toBeGreaterThanOrEqual(64);
  expect(lowered).toBeLessThan(150);
  const low = await limitedPayer([{ metric: "tokens", window: "day", amount: 60n }]);
  expect((await post("/v1/generate", low, own)).json.error.code).toBe("token_limit_exceeded");
});

test("a quote names the limit that would refuse the call, and the lowered output limit", async () => {
  const key = await limitedPayer([{ metric: "tokens", window: "day", amount: 200n }]);
  const fitting = await post("/v1/generate:quote", key, own);
  expect(fitting.json).toMatchObject({ fits: true, refusal: "", limit_id: "" });
  expect(fitting.json.max_tokens).toBeLessThan(200);
  const [limit] = await limitsOf(key);
  const refused = await post("/v1/generate:quote", key, { ...own, max_tokens: 400 });
  expect(refused.json).toMatchObject({ fits: false, refusal: "token_limit_exceeded", limit_id: limit?.id });
  expect((await limitsOf(key))[0]).toMatchObject({ held: 0, spent: 0 });
});

test("a replay takes nothing", async () => {
  const key = await limitedPayer([{ metric: "generations", window: "day", amount: 1n }]);
  const send = async () =>
    (
      await fetch(`${metered.app.url}/v1/generate`, {
        method: "POST",
        headers: { ...bearer(key.secret), "content-type": "application/json", "idempotency-key": "once" },
        body: JSON.stringify(own),
      })
    ).status;
  expect([await send(), await send()]).toEqual([200, 200]);
  expect((await limitsOf(key))[0]).toMatchObject({ spent: 1, remaining: 0 });
});

test("GET /v1/limits lists every limit with its use, and headers announce those of the minute", async () => {
  const key = await limitedPayer([
    { metric: "tokens", window: "minute", amount: 10_000n },
    { metric: "tokens", window: "minute", amount: 5_000n, model: SANDBOX_MODEL },
    { metric: "cost", window: "month", amount: 900_000n, per: "user" },
  ]);
  const answer = await post("/v1/generate", key, { ...own, max_tokens: 10, user: "ada" });
  const { usage } = answer.json;
  const tokens = usage.input_tokens + usage.output_tokens;
  expect(answer.headers.get("ratelimit-policy")).toBe('"rpm";q=1000000;w=60, "tokens";q=5000;w=60');
  expect(answer.headers.get("ratelimit")).toMatch(/^"rpm";r=\d+;t=\d+, "tokens";r=4\d\d\d;t=\d+$/);
  expect(answer.headers.get("x-ratelimit-limit-tokens")).toBe("5000");
  expect(answer.headers.get("x-ratelimit-remaining-tokens")).toMatch(/^4\d\d\d$/);
  expect(answer.headers.get("x-ratelimit-reset-tokens")).toMatch(/^\d+s$/);
  const limits = await limitsOf(key, "?user=ada");
  expect(limits).toMatchObject([
    { metric: "cost", per: "user", spent: usage.cost_micros, owner: "account", owner_id: key.accountId },
    { metric: "tokens", model: "", spent: tokens, held: 0, remaining: 10_000 - tokens },
    { metric: "tokens", model: SANDBOX_MODEL, spent: tokens, remaining: 5_000 - tokens },
    { id: "", metric: "requests", window: "minute", amount: 1_000_000, spent: 1, owner: "plan" },
    { id: "", metric: "active_keys", amount: 100, held: 1, owner: "plan", owner_id: "tests" },
  ]);
  expect((await limitsOf(key))[0]).toMatchObject({ spent: 0, remaining: 900_000 });
});

test("every 402 has its amounts in the error itself; lowering max_tokens is advised only if it helps", async () => {
  const key = await metered.payer(40n);
  const high = await post("/v1/generate", key, { ...own, max_tokens: 400 });
  const { error } = high.json;
  expect(high.headers.get("x-should-retry")).toBe("false");
  expect(error).toMatchObject({
    balance_micros: 40,
    held_micros: 0,
    available_micros: 40,
    required_micros: expect.any(Number),
    top_up_url: "https://pay.example/top-up",
  });
  expect(error.shortage_micros).toBe(error.required_micros - 40);
  expect(error.message).toContain("or lower max_tokens");
  const long = { ...own, messages: [{ role: "user", content: "word ".repeat(100) }], max_tokens: 400 };
  expect((await post("/v1/generate", key, long)).json.error.message).not.toContain("max_tokens");
});

test("operators set, raise and remove limits; a change holds from the next call on another server", async () => {
  const key = await metered.payer(1_000_000n);
  const owner = { case: "keyId", value: key.id } as const;
  const limit = { metric: "generations", window: "day", amount: 0n };
  const status = async () => (await post("/v1/generate", key, own, 1)).status;
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
