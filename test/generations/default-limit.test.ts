import { describe, expect, test, vi } from "vitest";
import { reply, replyWhen } from "../support/fake-upstreams/behaviours.ts";
import { type GenerateFields, useGenerator } from "../support/generators.ts";
import { REQUEST, running, TEMPLATE_MODEL, useMetered } from "../support/metered.ts";

const metered = useMetered();

/** 9 tokens, at most 26, and 64 + 16 for the chat template; an input token costs 1 micro, an output token 2. */
const { messages } = REQUEST;
const OPEN = { model: TEMPLATE_MODEL, messages };
const COUNTED = 9 + 80;
const BOUND = 26 + 80;

const generator = useGenerator(metered);

const calls = {
  unary: async (secret: string, request: GenerateFields = OPEN) => await generator.generate(request, { secret }),
  stream: async (secret: string, request: GenerateFields = OPEN) => {
    for await (const { event } of generator.stream(request, { secret })) if (event.case === "done") return event.value;
    return undefined;
  },
};

describe.each(["unary", "stream"] as const)("%s", (kind) => {
  const call = calls[kind];

  test.each([
    ["the model's default if the balance covers it", BOUND + 200, 100, BOUND + 200],
    ["the model's default if the balance covers it for counted tokens", COUNTED + 200, 100, COUNTED + 200],
    ["what the funds cover", COUNTED + 199, 99, COUNTED + 198],
    ["at least 64 tokens", COUNTED + 128, 64, COUNTED + 128],
  ])("without max_tokens the limit is %s", async (_, balance, maxTokens, held) => {
    const key = await metered.payer(BigInt(balance));
    const { call: sent, end } = await running(metered, () => call(key.secret));
    expect(sent.body.max_tokens).toBe(maxTokens);
    expect(await metered.account(key)).toEqual({ balance, held });
    expect((await end())?.usage?.costMicros).toBe(19n);
  });

  test("a balance for less than 64 tokens gets 402", async () => {
    const key = await metered.payer(BigInt(COUNTED + 127));
    const before = metered.upstream.calls.length;
    await expect(call(key.secret)).rejects.toMatchObject({
      reason: "insufficient_balance",
      metadata: { balance_micros: "216", held_micros: "0", required_micros: "217" },
    });
    expect(metered.upstream.calls).toHaveLength(before);
  });

  test("a max_tokens of the caller is not lowered", async () => {
    const key = await metered.payer(BigInt(COUNTED + 199));
    const before = metered.upstream.calls.length;
    await expect(call(key.secret, { ...OPEN, maxTokens: 100 })).rejects.toMatchObject({
      reason: "insufficient_balance",
      metadata: { required_micros: String(COUNTED + 200) },
    });
    expect(metered.upstream.calls).toHaveLength(before);
  });

  test("the tokens of a chat template are charged in full; usage beyond the hold is not charged", async () => {
    const key = await metered.payer(10_000n);
    const request = { ...OPEN, messages: [{ role: "user", content: "hi" }] };
    metered.upstream.next(reply({ usage: { input: 30, output: 4 } }));
    expect((await call(key.secret, request))?.usage).toMatchObject({ inputTokens: 30n, costMicros: 38n });
    metered.upstream.next(reply({ usage: { input: 1_000_000, output: 1_000_000 } }));
    // Two bytes and four delimiters for the message, 80 for the template, 100 for the output.
    const most = { inputTokens: 86n, outputTokens: 100n, costMicros: 286n };
    expect((await call(key.secret, request))?.usage).toMatchObject(most);
  });

  test("concurrent calls never hold more than the balance and leave less than the minimum hold", async () => {
    // Sufficient for two full calls and a lowered third one, but not for a fourth.
    const balance = 2 * (BOUND + 200) + COUNTED + 150;
    const key = await metered.payer(BigInt(balance));
    const gate = Promise.withResolvers<void>();
    const before = metered.upstream.calls.length;
    metered.upstream.always(replyWhen(gate.promise));
    const results = Array.from({ length: 10 }, () =>
      call(key.secret).then(
        () => "done",
        (error: { reason: string }) => error.reason,
      ),
    );
    let refused = 0;
    for (const result of results) void result.then((reason) => (refused += reason === "done" ? 0 : 1));
    await vi.waitFor(() => expect(refused + metered.upstream.calls.length - before).toBe(results.length), { interval: 5 });
    const { held } = await metered.account(key);
    const limits = metered.upstream.calls.slice(before).map(({ body }) => Number(body.max_tokens));
    expect(held).toBeLessThanOrEqual(balance);
    expect(balance - held).toBeLessThan(COUNTED + 2 * 64);
    expect(Math.min(...limits)).toBeGreaterThanOrEqual(64);
    // The hold is the cost of the permitted output and of the input, by bytes or by tokens.
    const output = limits.reduce((sum, limit) => sum + 2 * limit, 0);
    expect(held - output).toBeGreaterThanOrEqual(limits.length * COUNTED);
    expect(held - output).toBeLessThanOrEqual(limits.length * BOUND);
    gate.resolve();
    const reasons = await Promise.all(results);
    metered.upstream.always(reply());
    expect(new Set(reasons)).toEqual(new Set(["done", "insufficient_balance"]));
    expect(reasons.filter((reason) => reason === "done")).toHaveLength(limits.length);
    await metered.settled();
  });
});
