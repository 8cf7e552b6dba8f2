import type { Model } from "./model.ts";
import type { Micros } from "./money.ts";
import type { TokenUsage } from "./prompt.ts";

const TOKENS_PER_PRICE = 1_000_000n;

type Prices = Pick<Model, "inputMicrosPerMillionTokens" | "outputMicrosPerMillionTokens">;

/** What tokens cost: rounded up once, after both are added. */
export function costOf(prices: Prices, { inputTokens, outputTokens }: TokenUsage): Micros {
  const exact =
    BigInt(inputTokens) * prices.inputMicrosPerMillionTokens +
    BigInt(outputTokens) * prices.outputMicrosPerMillionTokens;
  return (exact + TOKENS_PER_PRICE - 1n) / TOKENS_PER_PRICE;
}

/**
 * How many of the wanted output tokens cost, with the input, at most so many micros; -1 where the input alone costs
 * more.
 */
export function affordableOutput(
  prices: Prices,
  { inputTokens, outputTokens: wanted }: TokenUsage,
  micros: Micros,
): number {
  // The cost is rounded up to whole micros, so it is at most `micros` exactly when the unrounded cost is.
  const rest = micros * TOKENS_PER_PRICE - BigInt(inputTokens) * prices.inputMicrosPerMillionTokens;
  const price = prices.outputMicrosPerMillionTokens;
  if (rest < 0n) return -1;
  return BigInt(wanted) * price <= rest ? wanted : Number(rest / price);
}

/** At most the hold, whatever the upstream reports. */
export function clampUsage(usage: TokenUsage, most: TokenUsage): TokenUsage {
  return {
    inputTokens: Math.min(usage.inputTokens, most.inputTokens),
    outputTokens: Math.min(usage.outputTokens, most.outputTokens),
  };
}
