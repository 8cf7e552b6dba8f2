import { expect, test } from "vitest";
import { reply, replyWhen, silent, silentAfter } from "../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../support/fake-upstreams/fake-upstream.ts";
import { type GenerateOptions, generators, useGenerator } from "../support/generators.ts";
import { lockMoney, REQUEST, useMetered } from "../support/metered.ts";

const metered = useMetered();

const EXPIRED = { code: "deadline_exceeded" };
const UNTOUCHED = { balance: 1_000, held: 0 };

/** Repeats the call with longer deadlines until it reaches the upstream, because the time depends on the machine. */
async function withLongerDeadlines<Result>(call: (deadlineMs: number) => Promise<Result | undefined>): Promise<Result> {
  for (let deadlineMs = 100; ; deadlineMs *= 2) {
    const result = await call(deadlineMs);
    if (result !== undefined) return result;
  }
}

/** The deadline in its form of each protocol passes; the rest is the same for all. */
test.each(generators.filter(({ hasDeadlines }) => hasDeadlines))("over $name", async ({ open }) => {
  const generator = open(metered.app.url);
  await expectCharged(silent, 0, 9, (options) => generator.generate(REQUEST, options));
  generator.close();
});

const generator = useGenerator(metered);

const calls = {
  unary: (options: GenerateOptions) => generator.generate(REQUEST, options),
  stream: async (options: GenerateOptions) => {
    for await (const _ of generator.stream(REQUEST, options));
  },
};

/** A deadline that passes cancels the upstream call, and its usage is charged. */
async function expectCharged(
  behaviour: Behaviour,
  output: number,
  amount: number,
  call: (options: GenerateOptions) => Promise<unknown>,
): Promise<void> {
  const key = await metered.payer(1_000n);
  const before = metered.upstream.calls.length;
  metered.upstream.always(behaviour);
  const row = await withLongerDeadlines(async (deadlineMs) => {
    await expect(call({ secret: key.secret, deadlineMs })).rejects.toMatchObject(EXPIRED);
    await metered.settled();
    return (await metered.rows(key)).find((row) => row.output === output);
  });
  metered.upstream.always(reply());
  expect(row).toMatchObject({
    amount,
    reason: `Generation with fake: 9 tokens in, ${output} tokens out (the caller's deadline passed)`,
  });
  const seen = metered.upstream.calls.slice(before);
  await metered.upstream.until(() => seen.every(({ ended }) => ended === "left"));
  expect((await metered.rows(key)).length).toBeGreaterThanOrEqual(seen.length);
  expect((await metered.account(key)).held).toBe(0);
}

test.each<["unary" | "stream", string, Behaviour, number, number]>([
  ["stream", "before the first token", silent, 0, 9],
  ["unary", "during the reply", silentAfter(2), 3, 15],
  ["stream", "during the reply", silentAfter(2), 3, 15],
])("%s: %s", async (kind, _, behaviour, output, amount) => {
  await expectCharged(behaviour, output, amount, calls[kind]);
});

test.each(["unary", "stream"] as const)(
  "%s: with an idempotency key the generation continues for the next retry",
  async (kind) => {
    const key = await metered.payer(1_000n);
    const rest = Promise.withResolvers<void>();
    const before = metered.upstream.calls.length;
    metered.upstream.next(replyWhen(rest.promise));
    const headers = await withLongerDeadlines(async (deadlineMs) => {
      const headers = { "idempotency-key": `within ${deadlineMs}` };
      await expect(calls[kind]({ secret: key.secret, deadlineMs, headers })).rejects.toMatchObject(EXPIRED);
      // The call has ended, but a started generation continues.
      await metered.gone();
      return (await metered.metric("vx_running_generations")) > 0 ? headers : undefined;
    });
    expect(await metered.rows(key)).toEqual([]);
    rest.resolve();
    await metered.settled();
    await calls[kind]({ secret: key.secret, headers });
    expect(metered.upstream.calls).toHaveLength(before + 1);
    expect(await metered.rows(key)).toMatchObject([{ amount: 19, reason: "Generation with fake: 11 tokens in, 4 tokens out" }]);
  },
);

test("a deadline that passes during the hold runs nothing", async () => {
  const key = await metered.payer(1_000n);
  const before = metered.upstream.calls.length;
  const lock = await lockMoney(metered, key);
  await expect(generator.generate(REQUEST, { secret: key.secret, deadlineMs: 150 })).rejects.toMatchObject(EXPIRED);
  await lock.free();
  await metered.settled();
  expect(metered.upstream.calls).toHaveLength(before);
  expect(await metered.account(key)).toEqual(UNTOUCHED);
});
