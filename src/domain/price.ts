import type { Model } from "./model.ts";
import type { Micros } from "./money.ts";
import type { TokenUsage } from "./prompt.ts";

const TOKENS_PER_PRICE = 1_000_000n;

type Prices = Pick<Model, "inputMicrosPerMillionTokens" | "outputMicrosPerMillionTokens">;

/** The cost of tokens, rounded up once after both parts are added. */
export function costOf(prices: Prices, { inputTokens, outputTokens }: TokenUsage): Micros {
  const exact =
    BigInt(inputTokens) * prices.inputMicrosPerMillionTokens +
    BigInt(outputTokens) * prices.outputMicrosPerMillionTokens;
  return (exact + TOKENS_PER_PRICE - 1n) / TOKENS_PER_PRICE;
}

/**
 * How many of the wanted output tokens, together with the input, cost at most `micros`; -1 if the input alone
 * costs more.
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

/** Limits the reported usage to the usage that the hold covers. */
export function clampUsage(usage: TokenUsage, max: TokenUsage): TokenUsage {
  return {
    inputTokens: Math.min(usage.inputTokens, max.inputTokens),
    outputTokens: Math.min(usage.outputTokens, max.outputTokens),
  };
}
