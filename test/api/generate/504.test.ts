import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reply, replyWhen, silent, silentAfter } from "../../support/fake-upstreams/behaviours.ts";
import type { Behaviour } from "../../support/fake-upstreams/fake-upstream.ts";
import { type GenerateOptions, type Generator, generators } from "../../support/generators.ts";
import { ASK, lockMoney, type Metered, startMetered } from "../../support/metered.ts";

let metered: Metered;

beforeAll(async () => {
  metered = await startMetered();
});
afterAll(() => metered.stop());

const EXPIRED = { code: "deadline_exceeded" };
const UNTOUCHED = { balance: 1_000, held: 0 };

/** Each case waits for a deadline, so the other protocols run only the first one. */
const THOROUGH = ["gRPC", "Connect JSON over HTTP/1.1"];

describe.each(generators.filter(({ hasDeadlines }) => hasDeadlines))("over $name", ({ name, open }) => {
  const isThorough = THOROUGH.includes(name);

  let generator: Generator;
  beforeAll(() => {
    generator = open(metered.app.url);
  });
  afterAll(() => generator.close());

  const calls = {
    unary: (options: GenerateOptions) => generator.generate(ASK, options),
    stream: async (options: GenerateOptions) => {
      for await (const _ of generator.stream(ASK, options));
    },
  };

  describe.each(["unary", "stream"] as const)("%s", (kind) => {
    const cases: [string, Behaviour, number, number][] = [
      ["before the first token", silent, 0, 9],
      ["in the middle", silentAfter(2), 3, 15],
    ];
    test.each(isThorough ? cases : cases.slice(0, 1))(
      "a deadline that passes %s ends the upstream's call, and what it used is charged",
      async (_, behaviour, output, amount) => {
        const key = await metered.payer(1_000n);
        const before = metered.upstream.calls.length;
        metered.upstream.next(behaviour);
        await expect(calls[kind]({ secret: key.secret, deadlineMs: 300 })).rejects.toMatchObject(EXPIRED);
        await metered.upstream.until(({ calls }) => calls[before]?.ended === "left");
        await metered.settled();
        expect(await metered.rows(key)).toMatchObject([
          {
            amount,
            output,
            reason: `Generation with fake: 9 tokens in, ${output} tokens out (the caller's deadline passed)`,
          },
        ]);
        expect(await metered.account(key)).toEqual({ balance: 1_000 - amount, held: 0 });
      },
    );

    test.runIf(isThorough)("with an idempotency key the generation goes on, for the next try", async () => {
      const key = await metered.payer(1_000n);
      const headers = { "idempotency-key": "again" };
      const rest = Promise.withResolvers<void>();
      const before = metered.upstream.calls.length;
      metered.upstream.next(replyWhen(rest.promise));
      await expect(calls[kind]({ secret: key.secret, deadlineMs: 300, headers })).rejects.toMatchObject(
        EXPIRED,
      );
      // The call has ended, although its generation has not.
      await metered.gone();
      expect(await metered.rows(key)).toEqual([]);
      rest.resolve();
      await metered.settled();
      await calls[kind]({ secret: key.secret, headers });
      expect(metered.upstream.calls).toHaveLength(before + 1);
      expect(await metered.rows(key)).toMatchObject([
        { amount: 19, reason: "Generation with fake: 11 tokens in, 4 tokens out" },
      ]);
    });
  });

  test.runIf(isThorough)(
    "every call that reaches the upstream is charged, however short its deadline",
    async () => {
      const key = await metered.payer(1_000n);
      const before = metered.upstream.calls.length;
      metered.upstream.always(silent);
      const ended = Array.from({ length: 12 }, (_, i) =>
        generator
          .generate(ASK, { secret: key.secret, deadlineMs: 5 + 12 * i })
          .catch((error: Error) => error),
      );
      for (const error of await Promise.all(ended)) expect(error).toMatchObject(EXPIRED);
      metered.upstream.always(reply());
      await metered.gone();
      await metered.settled();
      const executed = metered.upstream.calls.length - before;
      expect(executed).toBeGreaterThan(0);
      expect((await metered.rows(key)).length).toBeGreaterThanOrEqual(executed);
    },
  );

  test("a deadline that passes while the money is being held runs nothing", async () => {
    const key = await metered.payer(1_000n);
    const before = metered.upstream.calls.length;
    const lock = await lockMoney(metered, key);
    await expect(generator.generate(ASK, { secret: key.secret, deadlineMs: 150 })).rejects.toMatchObject(
      EXPIRED,
    );
    await lock.free();
    await metered.settled();
    expect(metered.upstream.calls).toHaveLength(before);
    expect(await metered.account(key)).toEqual(UNTOUCHED);
  });
});
