import fc from "fast-check";
import type { Prices } from "../../src/domain/price.ts";

const RATES = ["input", "cachedInput", "cacheWrite", "cacheWrite1h", "output", "reasoning", "image", "request"] as const;

/** Prices with up to three tiers, which begin at up to this number of tokens. */
export function anyPrices(price: fc.Arbitrary<bigint>, maxBound: number): fc.Arbitrary<Prices> {
  const rates = Object.fromEntries(RATES.map((name) => [name, price])) as Record<(typeof RATES)[number], typeof price>;
  const tier = fc.record({ aboveInputTokens: fc.integer({ min: 1, max: maxBound }), ...rates });
  const tiers = fc.uniqueArray(tier, { maxLength: 3, selector: ({ aboveInputTokens }) => aboveInputTokens });
  const inOrder = tiers.map((list) => list.toSorted((one, other) => one.aboveInputTokens - other.aboveInputTokens));
  return fc.record({ ...rates, tiers: inOrder });
}
