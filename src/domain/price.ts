import type { TokenUsage } from "./generation.ts";
import type { Model } from "./model.ts";
import type { Micros } from "./money.ts";

const TOKENS_PER_PRICE = 1_000_000n;

type Prices = Pick<Model, "inputMicrosPerMillionTokens" | "outputMicrosPerMillionTokens">;

/** What tokens cost: rounded up once, after both are added. */
export function costOf(prices: Prices, { inputTokens, outputTokens }: TokenUsage): Micros {
  const exact =
    BigInt(inputTokens) * prices.inputMicrosPerMillionTokens +
    BigInt(outputTokens) * prices.outputMicrosPerMillionTokens;
  return (exact + TOKENS_PER_PRICE - 1n) / TOKENS_PER_PRICE;
}

/** No more than what was held: an upstream may report what it likes. */
export function clampUsage(usage: TokenUsage, most: TokenUsage): TokenUsage {
  return {
    inputTokens: Math.min(usage.inputTokens, most.inputTokens),
    outputTokens: Math.min(usage.outputTokens, most.outputTokens),
  };
}
