import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { replyWhen } from "../support/fake-upstreams/behaviours.ts";
import type { TestKey } from "../support/fixtures.ts";
import {
  HELD_MICROS,
  METERED_SURFACES,
  MODEL,
  REQUEST,
  SANDBOX_MODEL,
  SANDBOX_REQUEST,
  useOwnMetered,
} from "../support/metered.ts";
import { bearer, callOf } from "../support/protocols.ts";

const TOP_UP_URL = "https://pay.example/top-up";

// An input token costs 1 micro, an output token 2.
let free: () => Promise<void>;
/** Its calls need more than the balance. */
let poor: TestKey;
/** A running call holds most of its balance. */
let waiting: TestKey;

const metered = useOwnMetered({ env: { VX_TOP_UP_URL: TOP_UP_URL } });
beforeAll(async () => {
  poor = await metered.payer(5n);
  waiting = await metered.payer(HELD_MICROS + 10n);
  const rest = Promise.withResolvers<void>();
  metered.upstream.next(replyWhen(rest.promise));
  const { messages, maxTokens } = REQUEST;
  const running = post("/v1/generate", waiting, { model: MODEL, messages, max_tokens: maxTokens });
  await metered.upstream.until(({ calls }) => calls.length > 0);
  free = async () => {
    rest.resolve();
    await running;
  };
});
afterAll(async () => {
  await free();
  await metered.settled();
});

type Body = Readonly<Record<string, unknown>>;

async function post(path: string, key: TestKey, body: Body) {
  const response = await fetch(`${metered.app.url}${path}`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const { status, headers } = response;
  const { error = {} } = (await response.json()) as { error?: Body };
  return { status, headers, error };
}

const AMOUNTS = ["balance_micros", "held_micros", "available_micros", "required_micros", "shortage_micros"];

/** The amounts of an error, which must agree with each other and with the account. */
function checkAmounts(figures: Body, balance: number, held: number): void {
  const amounts = AMOUNTS.map((name) => Number(figures[name]));
  const required = Number(figures.required_micros);
  const available = balance - held;
  expect(amounts).toEqual([balance, held, available, required, required - available]);
  expect(required).toBeGreaterThan(available);
  expect(figures.top_up_url).toBe(TOP_UP_URL);
}

function metadataOf(details: unknown): Body {
  return Array.isArray(details) ? (details[0] as { metadata: Body }).metadata : (details as Body);
}

describe.each(METERED_SURFACES)("POST %s %o", (path, body) => {
  test("a balance that is too low is a 402 with the amounts, which is not repeated", async () => {
    const { status, headers, error } = await post(path, poor, body);
    expect({ status, code: error.code }).toEqual({ status: 402, code: "insufficient_balance" });
    checkAmounts(error, 5, 0);
    for (const name of AMOUNTS) expect(error[name]).toBeTypeOf("number");
    checkAmounts(metadataOf(error.details), 5, 0);
    expect([headers.get("x-should-retry"), headers.get("retry-after")]).toEqual(["false", null]);
  });

  test("a balance that only running calls hold is a 402 that official SDKs repeat", async () => {
    const { status, headers, error } = await post(path, waiting, body);
    expect({ status, code: error.code }).toEqual({ status: 402, code: "insufficient_balance" });
    checkAmounts(error, 56, 46);
    checkAmounts(metadataOf(error.details), 56, 46);
    expect(headers.get("x-should-retry")).toBe("true");
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(5);
  });
});

describe("over Connect", () => {
  const call = async (key: TestKey) => {
    const request = { ...REQUEST, model: SANDBOX_MODEL };
    const outcome = await callOf(metered.app)(GenerateService.method.generate, request, key.secret);
    if (outcome.ok) throw new Error("the call succeeded");
    return { ...outcome, details: outcome.details.map((name) => name.split(".").at(-1)) };
  };

  test("the details have the amounts", async () => {
    const { reason, metadata, details } = await call(poor);
    expect(reason).toBe("insufficient_balance");
    checkAmounts(metadata, 5, 0);
    expect(details).toContain("PreconditionFailure");
    expect(details).not.toContain("RetryInfo");
  });

  test("the details say when to repeat a call that only running calls prevent", async () => {
    const { metadata, details } = await call(waiting);
    checkAmounts(metadata, 56, 46);
    expect(details).toContain("RetryInfo");
  });
});

describe("the text", () => {
  const longCall = {
    ...SANDBOX_REQUEST,
    messages: [{ role: "user", content: "word ".repeat(100) }],
    max_tokens: 400,
  };
  const limited = async (limit: { metric: string; amount: bigint }, balance = 1_000_000n) => {
    const key = await metered.payer(balance);
    const owner = { case: "keyId", value: key.id } as const;
    await metered.operator.setLimit({ owner, limit: { window: "day", ...limit } });
    return key;
  };

  test.each(["cost", "tokens"])("of a limit of %s advises a lower max_tokens only if one fits", async (metric) => {
    const key = await limited({ metric, amount: 60n });
    const fits = await post("/v1/generate", key, { ...SANDBOX_REQUEST, max_tokens: 400 });
    expect(fits.error.message).toContain("Lower max_tokens, or raise the limit.");
    const { error } = await post("/v1/generate", key, longCall);
    expect(error.message).toMatch(/needs more than the limit\. Raise the limit\.$/);
  });
});
