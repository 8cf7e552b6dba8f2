import type { Micros } from "./money.ts";

/**
 * What a generation used, as disjoint meters: no token counts for two of them, except for the parts of meters. The public
 * counts of input and output tokens are the sums.
 */
export type Usage = {
  /** Input tokens that were neither read from a cache nor written to it. */
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  /** The part of the cache writes that is kept for an hour. */
  readonly cacheWrite1h: number;
  /** Output tokens without reasoning. */
  readonly output: number;
  readonly reasoning: number;
  readonly images: number;
  /** The part of the input tokens that images have. For information only: they are charged as input. */
  readonly imageTokens: number;
};

/** The counts that an upstream reported; each detail is part of its total. */
type Reported = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInput?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly cacheWrite1h?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly imageTokens?: number | undefined;
};

/** Makes the counts disjoint. Details that exceed their total are lowered. */
export function usageOf(reported: Reported): Usage {
  const { inputTokens, outputTokens } = reported;
  const cachedInput = Math.min(reported.cachedInput ?? 0, inputTokens);
  const cacheWrite = Math.min(reported.cacheWrite ?? 0, inputTokens - cachedInput);
  const reasoning = Math.min(reported.reasoning ?? 0, outputTokens);
  return {
    input: inputTokens - cachedInput - cacheWrite,
    cachedInput,
    cacheWrite,
    cacheWrite1h: Math.min(reported.cacheWrite1h ?? 0, cacheWrite),
    output: outputTokens - reasoning,
    reasoning,
    images: 0,
    imageTokens: Math.min(reported.imageTokens ?? 0, inputTokens),
  };
}

export function inputTokensOf({ input, cachedInput, cacheWrite }: Usage): number {
  return input + cachedInput + cacheWrite;
}

export function outputTokensOf({ output, reasoning }: Usage): number {
  return output + reasoning;
}

/** Limits the usage to what the hold covers. The meters that usually cost least keep their counts. */
export function clampUsage(usage: Usage, maxInputTokens: number, maxOutputTokens: number): Usage {
  const cachedInput = Math.min(usage.cachedInput, maxInputTokens);
  const cacheWrite = Math.min(usage.cacheWrite, maxInputTokens - cachedInput);
  const input = Math.min(usage.input, maxInputTokens - cachedInput - cacheWrite);
  const output = Math.min(usage.output, maxOutputTokens);
  return {
    input,
    cachedInput,
    cacheWrite,
    cacheWrite1h: Math.min(usage.cacheWrite1h, cacheWrite),
    output,
    reasoning: Math.min(usage.reasoning, maxOutputTokens - output),
    images: usage.images,
    imageTokens: Math.min(usage.imageTokens, input + cachedInput + cacheWrite),
  };
}

const TOKENS_PER_PRICE = 1_000_000n;

/**
 * With the context window, the price, the overhead of 2,000 messages and 100 images at their maximum, a call costs
 * less than 2.2 × 10^14 micros: every JSON reader represents it exactly, and it fits the ledger's bigint.
 */
export const MAX_PRICE = 1_000_000_000_000n;
export const MAX_TIERS = 8;

/** What the meters cost in micros: tokens per million, images and requests per unit. */
export type Rates = {
  readonly input: Micros;
  readonly cachedInput: Micros;
  readonly cacheWrite: Micros;
  /** Cache writes that are kept for an hour. */
  readonly cacheWrite1h: Micros;
  readonly output: Micros;
  readonly reasoning: Micros;
  readonly image: Micros;
  readonly request: Micros;
};

/** The rates of calls with more input tokens than a bound. */
export type PriceTier = Rates & { readonly aboveInputTokens: number };

/** What a model costs: the rates of calls that exceed no bound, and the tiers in ascending order of their bounds. */
export type Prices = Rates & { readonly tiers: readonly PriceTier[] };

/** Prices of input and output alone; every kind of token costs what its total costs. */
export function tokenPrices(input: Micros, output: Micros): Prices {
  return {
    input,
    cachedInput: input,
    cacheWrite: input,
    cacheWrite1h: input,
    output,
    reasoning: output,
    image: 0n,
    request: 0n,
    tiers: [],
  };
}

/** A discount of all: prices are free. Discounts are in hundredths of a percent. */
const FULL_DISCOUNT = 10_000n;

/** Each price after a discount, rounded up to a micro. */
export function discountedPrices({ tiers, ...rates }: Prices, discount: number): Prices {
  return {
    ...discountedRates(rates, discount),
    tiers: tiers.map(({ aboveInputTokens, ...ofTier }) => ({
      aboveInputTokens,
      ...discountedRates(ofTier, discount),
    })),
  };
}

export function discountedPrice(price: Micros, discount: number): Micros {
  return (price * (FULL_DISCOUNT - BigInt(discount)) + FULL_DISCOUNT - 1n) / FULL_DISCOUNT;
}

function discountedRates(rates: Rates, discount: number): Rates {
  const entries = Object.entries(rates).map(([name, price]) => [name, discountedPrice(price, discount)]);
  return Object.fromEntries(entries) as Rates;
}

/** The bound of the highest tier that this input exceeds, for the whole call; 0 for the rates without a bound. */
export function tierOf({ tiers }: Prices, usage: Usage): number {
  return tiers.length === 0 ? 0 : (reachedTier(tiers, inputTokensOf(usage))?.aboveInputTokens ?? 0);
}

function reachedTier(tiers: readonly PriceTier[], inputTokens: number): PriceTier | undefined {
  return tiers.findLast(({ aboveInputTokens }) => inputTokens > aboveInputTokens);
}

/** An upper bound of the usage of a generation. */
export type Extent = { readonly inputTokens: number; readonly outputTokens: number; readonly images: number };

/** The cost of a generation, rounded up once after all meters are added. */
export function costOf(prices: Prices, usage: Usage): Micros {
  const { tiers } = prices;
  const rates = tiers.length === 0 ? prices : (reachedTier(tiers, inputTokensOf(usage)) ?? prices);
  const cost = meterCosts(rates, usage);
  const tokens = cost.input + cost.cachedInput + cost.cacheWrite + cost.cacheWrite1h + cost.output + cost.reasoning;
  return roundedUp(tokens + cost.image + cost.request);
}

/** What each meter of a generation costs, in millionths of a micro, so that nothing is rounded. */
export function meterCosts(rates: Rates, usage: Usage): Rates {
  return {
    input: BigInt(usage.input) * rates.input,
    cachedInput: BigInt(usage.cachedInput) * rates.cachedInput,
    cacheWrite: BigInt(usage.cacheWrite - usage.cacheWrite1h) * rates.cacheWrite,
    cacheWrite1h: BigInt(usage.cacheWrite1h) * rates.cacheWrite1h,
    output: BigInt(usage.output) * rates.output,
    reasoning: BigInt(usage.reasoning) * rates.reasoning,
    image: BigInt(usage.images) * rates.image * TOKENS_PER_PRICE,
    request: rates.request * TOKENS_PER_PRICE,
  };
}

/** The maximum cost of a generation: each token is priced at the most expensive meter that may apply to it. */
export function maxCostOf(prices: Prices, { inputTokens, outputTokens, images }: Extent): Micros {
  const { input, output, image, request } = maxRates(prices, inputTokens);
  const tokens = BigInt(inputTokens) * input + BigInt(outputTokens) * output;
  return roundedUp(tokens) + BigInt(images) * image + request;
}

/**
 * How many of the wanted output tokens, together with everything else, cost at most `micros`; -1 if the rest
 * alone costs more.
 */
export function affordableOutput(prices: Prices, extent: Extent, micros: Micros): number {
  const { inputTokens, outputTokens: wanted, images } = extent;
  const { input, output, image, request } = maxRates(prices, inputTokens);
  const flat = BigInt(images) * image + request;
  // The cost is rounded up to whole micros, so it is at most `micros` exactly when the unrounded cost is.
  const rest = (micros - flat) * TOKENS_PER_PRICE - BigInt(inputTokens) * input;
  if (rest < 0n) return -1;
  return BigInt(wanted) * output <= rest ? wanted : Number(rest / output);
}

type MaxRates = Pick<Rates, "input" | "output" | "image" | "request">;

/** The most expensive meter of each side, in any tier that a call with at most this input can reach. */
function maxRates(prices: Prices, inputTokens: number): MaxRates {
  let most = maxRatesOf(prices);
  for (const tier of prices.tiers) {
    if (inputTokens <= tier.aboveInputTokens) break;
    const { input, output, image, request } = maxRatesOf(tier);
    most = {
      input: max(most.input, input),
      output: max(most.output, output),
      image: max(most.image, image),
      request: max(most.request, request),
    };
  }
  return most;
}

function maxRatesOf(rates: Rates): MaxRates {
  const { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, image, request } = rates;
  return {
    input: max(max(input, cachedInput), max(cacheWrite, cacheWrite1h)),
    output: max(output, reasoning),
    image,
    request,
  };
}

function max(one: Micros, other: Micros): Micros {
  return one > other ? one : other;
}

function roundedUp(exact: bigint): Micros {
  return (exact + TOKENS_PER_PRICE - 1n) / TOKENS_PER_PRICE;
}
