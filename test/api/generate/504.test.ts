import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silent, silentAfter } from "../../support/fake-upstreams/behaviours.ts";
import { type Generator, generators } from "../../support/generators.ts";
import { ASK, lockMoney, type Metered, startMetered } from "../../support/metered.ts";

let metered: Metered;

beforeAll(async () => {
  metered = await startMetered();
});
afterAll(() => metered.stop());

const EXPIRED = { code: "deadline_exceeded" };
const UNTOUCHED = { balance: 1_000, held: 0 };

describe.each(generators.filter(({ hasDeadlines }) => hasDeadlines))("over $name", ({ open }) => {
  let generator: Generator;
  beforeAll(() => {
    generator = open(metered.app.url);
  });
  afterAll(() => generator.close());

  test.each([
    ["before the first token", silent],
    ["in the middle", silentAfter(2)],
  ])(
    "a deadline that passes %s ends the upstream's call, and the caller pays nothing",
    async (_, behaviour) => {
      const key = await metered.payer(1_000n);
      const before = metered.upstream.calls.length;
      metered.upstream.next(behaviour);
      const options = { secret: key.secret, deadlineMs: 150, headers: { "idempotency-key": "again" } };
      await expect(generator.generate(ASK, options)).rejects.toMatchObject(EXPIRED);
      await metered.upstream.until(({ calls }) => calls[before]?.ended === "left");
      await metered.settled();
      expect(await metered.rows(key)).toEqual([]);
      expect(await metered.account(key)).toEqual(UNTOUCHED);
      // Nothing was produced that could be repeated: the call can be made again.
      expect(await generator.generate(ASK, { ...options, deadlineMs: 30_000 })).toMatchObject({
        balanceMicros: 981n,
      });
    },
  );

  test("a stream whose deadline passes has cost what it gave", async () => {
    const key = await metered.payer(1_000n);
    metered.upstream.next(silentAfter(2));
    const read = async () => {
      for await (const _ of generator.stream(ASK, { secret: key.secret, deadlineMs: 300 }));
    };
    await expect(read()).rejects.toMatchObject(EXPIRED);
    await metered.settled();
    expect(await metered.rows(key)).toMatchObject([
      { reason: "Generation with fake: 9 tokens in, 3 tokens out (cut off at the deadline)" },
    ]);
  });

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
