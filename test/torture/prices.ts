/** What a million tokens of each kind and one call cost, in micros. */
type Rates = { readonly input: bigint; readonly output: bigint };

/** The prices of a model. A call with more input tokens than `above` has those of `large`. */
export type PriceSet = Rates & { readonly request: bigint; readonly above: number; readonly large: Rates };

/** What an account has in place of the prices of the model: a discount in hundredths of a percent, or its own prices. */
export type Terms = { readonly discount?: number; readonly prices?: PriceSet };

/** The model that customers pay for. Its prices change while calls run. */
export const PRICED_MODEL = "priced";

/** What the upstream of both models costs. */
export const UPSTREAM_COST = "{input: 900001, output: 1800001}";

/** The prices that the model has one after the other. Calls have 10 to 70 input tokens, and fewer output tokens than any bound. */
export const PRICE_SETS: readonly PriceSet[] = [
  { input: 30_000_007n, output: 60_000_003n, request: 4_003n, above: 40, large: { input: 90_000_011n, output: 50_000_021n } },
  { input: 33_100_009n, output: 57_000_013n, request: 5_000n, above: 30, large: { input: 21_000_037n, output: 70_000_039n } },
  { input: 28_700_017n, output: 66_000_019n, request: 3_011n, above: 50, large: { input: 95_000_003n, output: 66_000_019n } },
];

/** The prices that an account gets for itself. */
export const OWN_PRICES: PriceSet = {
  input: 17_000_023n,
  output: 41_000_029n,
  request: 2_007n,
  above: 35,
  large: { input: 19_000_031n, output: 43_000_041n },
};

/** The prices of re-ratings: of some calls they are higher, of others lower than what was charged. */
export const RERATINGS: readonly PriceSet[] = [
  { input: 31_000_001n, output: 58_000_001n, request: 4_002n, above: 45, large: { input: 88_000_001n, output: 49_000_001n } },
  { input: 24_000_013n, output: 61_000_007n, request: 3_505n, above: 25, large: { input: 52_000_009n, output: 63_000_011n } },
];

/** The charge of a call, by the rules of the documentation. */
export function chargeAt(
  prices: PriceSet,
  { discount = 0, prices: own = prices }: Terms,
  inputTokens: bigint,
  outputTokens: bigint,
): bigint {
  const { input, output } = inputTokens > own.above ? own.large : own;
  const discounted = (price: bigint) => dividedUp(price * BigInt(10_000 - discount), 10_000n);
  const tokens = inputTokens * discounted(input) + outputTokens * discounted(output);
  return dividedUp(tokens, 1_000_000n) + discounted(own.request);
}

function dividedUp(value: bigint, by: bigint): bigint {
  return value / by + (value % by === 0n ? 0n : 1n);
}

/** The prices in a models file. */
export function pricesYaml({ input, output, request, above, large }: PriceSet): string {
  const tier = `{above_input_tokens: ${above}, input: ${large.input}, output: ${large.output}}`;
  return `{input: ${input}, output: ${output}, request: ${request}, tiers: [${tier}]}`;
}

/** The prices in a request, which names every kind of token. */
export function pricesJson({ input, output, request, above, large }: PriceSet): object {
  const rates = (of: Rates) => {
    const [inputPrice, outputPrice] = [String(of.input), String(of.output)];
    return {
      input: inputPrice,
      cachedInput: inputPrice,
      cacheWrite: inputPrice,
      cacheWrite1h: inputPrice,
      output: outputPrice,
      reasoning: outputPrice,
      request: String(request),
    };
  };
  return { ...rates({ input, output }), tiers: [{ aboveInputTokens: String(above), ...rates(large) }] };
}
