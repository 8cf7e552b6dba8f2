import type { Micros } from "./money.ts";
import type { Usage } from "./usage.ts";

const TOKENS_PER_PRICE = 1_000_000n;

/** What a model costs in micros: token meters per million tokens, images and requests per unit. */
export type Prices = {
  readonly input: Micros;
  readonly cachedInput: Micros;
  readonly cacheWrite: Micros;
  readonly output: Micros;
  readonly reasoning: Micros;
  readonly image: Micros;
  readonly request: Micros;
};

/** Prices of input and output alone; every kind of token costs what its total costs. */
export function tokenPrices(input: Micros, output: Micros): Prices {
  return { input, cachedInput: input, cacheWrite: input, output, reasoning: output, image: 0n, request: 0n };
}

/** An upper bound of the usage of a generation. */
export type Extent = { readonly inputTokens: number; readonly outputTokens: number; readonly images: number };

/** The cost of a generation, rounded up once after all meters are added. */
export function costOf(prices: Prices, usage: Usage): Micros {
  const tokens =
    BigInt(usage.input) * prices.input +
    BigInt(usage.cachedInput) * prices.cachedInput +
    BigInt(usage.cacheWrite) * prices.cacheWrite +
    BigInt(usage.output) * prices.output +
    BigInt(usage.reasoning) * prices.reasoning;
  return roundedUp(tokens) + BigInt(usage.images) * prices.image + prices.request;
}

/** The maximum cost of a generation: each token is priced at the most expensive meter that may apply to it. */
export function maxCostOf(prices: Prices, { inputTokens, outputTokens, images }: Extent): Micros {
  const tokens = BigInt(inputTokens) * maxInputPrice(prices) + BigInt(outputTokens) * maxOutputPrice(prices);
  return roundedUp(tokens) + BigInt(images) * prices.image + prices.request;
}

/**
 * How many of the wanted output tokens, together with everything else, cost at most `micros`; -1 if the rest
 * alone costs more.
 */
export function affordableOutput(prices: Prices, extent: Extent, micros: Micros): number {
  const { inputTokens, outputTokens: wanted, images } = extent;
  const flat = BigInt(images) * prices.image + prices.request;
  // The cost is rounded up to whole micros, so it is at most `micros` exactly when the unrounded cost is.
  const rest = (micros - flat) * TOKENS_PER_PRICE - BigInt(inputTokens) * maxInputPrice(prices);
  const price = maxOutputPrice(prices);
  if (rest < 0n) return -1;
  return BigInt(wanted) * price <= rest ? wanted : Number(rest / price);
}

function maxInputPrice({ input, cachedInput, cacheWrite }: Prices): Micros {
  return max(input, max(cachedInput, cacheWrite));
}

function maxOutputPrice({ output, reasoning }: Prices): Micros {
  return max(output, reasoning);
}

function max(one: Micros, other: Micros): Micros {
  return one > other ? one : other;
}

function roundedUp(exact: bigint): Micros {
  return (exact + TOKENS_PER_PRICE - 1n) / TOKENS_PER_PRICE;
}
