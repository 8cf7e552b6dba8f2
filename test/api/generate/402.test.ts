import { describe, expect, test } from "vitest";
import { replyWhen } from "../../support/fake-upstreams/behaviours.ts";
import { useGenerator } from "../../support/generators.ts";
import { HELD_MICROS, REQUEST, useMetered } from "../../support/metered.ts";

const metered = useMetered();

const generator = useGenerator(metered);

const calls = {
  unary: (secret: string) => generator.generate(REQUEST, { secret }),
  stream: (secret: string) => generator.stream(REQUEST, { secret }).next(),
};

describe.each(["unary", "stream"] as const)("%s", (kind) => {
  test("without sufficient balance nothing runs or is charged, and the error contains the amounts", async () => {
    // Four words and delimiters are 9 tokens, and the hold is computed from the count.
    const key = await metered.payer(28n);
    const before = metered.upstream.calls.length;
    await expect(calls[kind](key.secret)).rejects.toMatchObject({
      reason: "insufficient_balance",
      code: "failed_precondition",
      metadata: { balance_micros: "28", held_micros: "0", required_micros: "29" },
      message: expect.stringContaining("Top up the account"),
    });
    expect(metered.upstream.calls).toHaveLength(before);
    expect(await metered.rows(key)).toEqual([]);
    expect(await metered.account(key)).toEqual({ balance: 28, held: 0 });
  });

  test("a balance that is held by running calls is reported as such", async () => {
    const key = await metered.payer(HELD_MICROS + 10n);
    const rest = Promise.withResolvers<void>();
    const before = metered.upstream.calls.length;
    metered.upstream.next(replyWhen(rest.promise));
    const running = generator.generate(REQUEST, { secret: key.secret });
    await metered.upstream.until(({ calls }) => calls.length > before);
    await expect(calls[kind](key.secret)).rejects.toMatchObject({
      reason: "insufficient_balance",
      metadata: { balance_micros: "56", held_micros: "46", required_micros: "29" },
      message: expect.stringMatching(/running calls hold \$0\.000046 of it\. Try again/),
    });
    rest.resolve();
    await running;
    // After the call has ended, the rest is sufficient for another call.
    expect(await calls[kind](key.secret)).toBeDefined();
    await metered.settled();
  });
});

test("a balance that covers the counted tokens is sufficient, independent of their bytes", async () => {
  const key = await metered.payer(29n);
  const reply = await generator.generate(REQUEST, { secret: key.secret });
  expect(reply).toMatchObject({ usage: { inputTokens: 9n, outputTokens: 4n, costMicros: 17n } });
});
