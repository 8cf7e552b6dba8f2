import fc from "fast-check";
import { expect, test } from "vitest";
import {
  affordableOutput,
  clampUsage,
  costOf,
  inputTokensOf,
  maxCostOf,
  outputTokensOf,
  tierOf,
  tokenPrices,
  usageOf,
} from "../../src/domain/price.ts";
import { anyPrices } from "../support/any-prices.ts";

const price = fc.bigInt({ min: 0n, max: 1_000_000_000_000n });
const tokens = fc.nat(100_000_000);
const prices = anyPrices(price, 100_000_000);
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
const details = { cachedInput: count, cacheWrite: count, cacheWrite1h: count, reasoning: count, imageTokens: count };
const totals = { inputTokens: count, outputTokens: count };
const reported = fc.record({ ...totals, ...details }, { requiredKeys: ["inputTokens", "outputTokens"] });

test("the meters of any reported usage are disjoint and add up to its totals", () => {
  fc.assert(
    fc.property(reported, (counts) => {
      const usage = usageOf(counts);
      expect(inputTokensOf(usage)).toBe(counts.inputTokens);
      expect(outputTokensOf(usage)).toBe(counts.outputTokens);
      for (const meter of Object.values(usage)) expect(meter).toBeGreaterThanOrEqual(0);
      expect(usage.imageTokens).toBeLessThanOrEqual(counts.inputTokens);
      expect(usage.cacheWrite1h).toBeLessThanOrEqual(usage.cacheWrite);
    }),
  );
});

test("for any reported usage, the charge is at most the hold", () => {
  const held = fc.record({ inputTokens: tokens, outputTokens: tokens, images });
  fc.assert(
    fc.property(prices, reported, held, (prices, counts, extent) => {
      const usage = usageOf(counts);
      const charged = { ...clampUsage(usage, extent.inputTokens, extent.outputTokens), images: extent.images };
      expect(costOf(prices, charged)).toBeLessThanOrEqual(maxCostOf(prices, extent));
      if (counts.inputTokens <= extent.inputTokens) expect(inputTokensOf(charged)).toBe(counts.inputTokens);
      if (counts.outputTokens <= extent.outputTokens) expect(outputTokensOf(charged)).toBe(counts.outputTokens);
    }),
  );
});

test("only the input selects the tier, cached tokens included, and it must exceed the bound", () => {
  const prices = { ...tokenPrices(1n, 1n), tiers: [{ ...tokenPrices(2n, 2n), aboveInputTokens: 200_000 }] };
  const tier = (counts: Parameters<typeof usageOf>[0]) => tierOf(prices, usageOf(counts));
  expect(tier({ inputTokens: 200_000, outputTokens: 900_000 })).toBe(0);
  expect(tier({ inputTokens: 200_001, outputTokens: 1 })).toBe(200_000);
  expect(tier({ inputTokens: 200_001, outputTokens: 1, cachedInput: 150_000, cacheWrite: 50_000 })).toBe(200_000);
});

test("a hold has the highest prices of the tiers that the call can reach, and no others", () => {
  const tiers = [
    { ...tokenPrices(9_000_000n, 1_000_000n), aboveInputTokens: 10 },
    { ...tokenPrices(2_000_000n, 8_000_000n), aboveInputTokens: 20 },
  ];
  const prices = { ...tokenPrices(1_000_000n, 2_000_000n), tiers };
  const held = (inputTokens: number) => maxCostOf(prices, { inputTokens, outputTokens: 1, images: 0 });
  expect([held(10), held(11), held(21)]).toEqual([10n + 2n, 99n + 2n, 189n + 8n]);
});
