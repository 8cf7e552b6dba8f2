import fc from "fast-check";
import { expect, test } from "vitest";
import { affordableOutput, costOf, maxCostOf } from "../../src/domain/price.ts";
import { clampUsage, inputTokensOf, outputTokensOf, usageOf } from "../../src/domain/usage.ts";

const price = fc.bigInt({ min: 0n, max: 1_000_000_000_000n });
const prices = fc.record({
  input: price,
  cachedInput: price,
  cacheWrite: price,
  output: price,
  reasoning: price,
  image: price,
  request: price,
});
const tokens = fc.nat(100_000_000);
const images = fc.nat(100);

test("the balance covers exactly the computed output, and not one token more", () => {
  fc.assert(
    fc.property(
      prices,
      fc.record({ inputTokens: tokens, outputTokens: tokens, images }),
      fc.bigInt({ min: 0n, max: 10n ** 15n }),
      (prices, extent, micros) => {
        const costs = (outputTokens: number) => maxCostOf(prices, { ...extent, outputTokens });
        const affordable = affordableOutput(prices, extent, micros);
        expect(affordable).toBeLessThanOrEqual(extent.outputTokens);
        if (affordable >= 0) expect(costs(affordable)).toBeLessThanOrEqual(micros);
        if (affordable < extent.outputTokens) expect(costs(affordable + 1)).toBeGreaterThan(micros);
      },
    ),
  );
});

const count = fc.maxSafeNat();
const reported = fc.record(
  {
    inputTokens: count,
    outputTokens: count,
    cachedInput: count,
    cacheWrite: count,
    reasoning: count,
    imageTokens: count,
  },
  { requiredKeys: ["inputTokens", "outputTokens"] },
);

test("the meters of any reported usage are disjoint and add up to its totals", () => {
  fc.assert(
    fc.property(reported, (counts) => {
      const usage = usageOf(counts);
      expect(inputTokensOf(usage)).toBe(counts.inputTokens);
      expect(outputTokensOf(usage)).toBe(counts.outputTokens);
      for (const meter of Object.values(usage)) expect(meter).toBeGreaterThanOrEqual(0);
      expect(usage.imageTokens).toBeLessThanOrEqual(counts.inputTokens);
    }),
  );
});

test("for any reported usage, the charge is at most the hold", () => {
  const held = fc.record({ inputTokens: tokens, outputTokens: tokens, images });
  fc.assert(
    fc.property(prices, reported, held, (prices, counts, extent) => {
      const usage = usageOf(counts);
      const charged = {
        ...clampUsage(usage, extent.inputTokens, extent.outputTokens),
        images: extent.images,
      };
      expect(costOf(prices, charged)).toBeLessThanOrEqual(maxCostOf(prices, extent));
      if (counts.inputTokens <= extent.inputTokens) expect(inputTokensOf(charged)).toBe(counts.inputTokens);
      if (counts.outputTokens <= extent.outputTokens)
        expect(outputTokensOf(charged)).toBe(counts.outputTokens);
    }),
  );
});
