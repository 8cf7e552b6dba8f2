import { expect, test } from "vitest";
import { useGenerator } from "../support/generators.ts";
import { HELD_MICROS, REQUEST, running, useMetered } from "../support/metered.ts";

const metered = useMetered();

// The input has 9 tokens of one micro each, and each of the 10 output tokens costs two.
const generator = useGenerator(metered);

test.each([
  ["the byte bound fits", HELD_MICROS, 10, 46],
  ["only the counted input fits", HELD_MICROS - 1n, 10, 29],
  ["the counted input fits exactly", 29n, 10, 29],
  ["nine tokens fit", 28n, 9, 27],
  ["one token fits", 11n, 1, 11],
])("when %s into max_cost_micros, the limit is lowered to it", async (_, maxCostMicros, limit, held) => {
  const key = await metered.payer(1_000n);
  const { call, end } = await running(metered, () => generator.generate({ ...REQUEST, maxCostMicros }, { secret: key.secret }));
  expect(call.body).toMatchObject({ max_tokens: limit });
  expect(await metered.account(key)).toEqual({ balance: 1_000, held });
  expect((await end()).usage?.costMicros).toBeLessThanOrEqual(maxCostMicros);
});

test("when not even one token fits, nothing is held or called", async () => {
  const key = await metered.payer(1_000n);
  const before = metered.upstream.calls.length;
  for (const maxCostMicros of [10n, 0n]) {
    await expect(generator.generate({ ...REQUEST, maxCostMicros }, { secret: key.secret })).rejects.toMatchObject({
      reason: "max_cost_too_low",
      code: "invalid_argument",
      metadata: { max_cost_micros: String(maxCostMicros), required_micros: "11" },
    });
  }
  expect(metered.upstream.calls).toHaveLength(before);
  expect(await metered.account(key)).toEqual({ balance: 1_000, held: 0 });
});

test("a balance below the lowered hold is a 402", async () => {
  const { secret } = await metered.payer(15n);
  await expect(generator.generate({ ...REQUEST, maxCostMicros: 20n }, { secret })).rejects.toMatchObject({
    reason: "insufficient_balance",
    metadata: { required_micros: "19" },
  });
});
