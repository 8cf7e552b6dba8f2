import { z } from "zod";
import { type Prices, tokenPrices } from "../domain/price.ts";

/**
 * With the context window, the price, the overhead of 2,000 messages and 100 images at their maximum, a call costs
 * less than 2.2 × 10^14 micros: every JSON reader represents it exactly, and it fits the ledger's bigint.
 */
const MAX_PRICE = 1_000_000_000_000;

const price = z.int().min(0).max(MAX_PRICE).transform(BigInt);

const prices = z
  .strictObject({
    input: price,
    cached_input: price.optional(),
    cache_write: price.optional(),
    output: price,
    reasoning: price.optional(),
    image: price.default(0n),
    request: price.default(0n),
  })
  .transform(
    ({ input, output, image, request, ...details }): Prices => ({
      input,
      cachedInput: details.cached_input ?? input,
      cacheWrite: details.cache_write ?? input,
      output,
      reasoning: details.reasoning ?? output,
      image,
      request,
    }),
  );

/** The prices of a model: all of them in one group, or those of input and output in two fields. */
export const priceFields = {
  prices: prices.optional(),
  input_micros_per_million_tokens: price.optional(),
  output_micros_per_million_tokens: price.optional(),
};

type PriceValues = z.output<z.ZodObject<typeof priceFields>>;

/** Reports prices that are missing or given in both forms. */
export function checkPrices(values: PriceValues, wrong: (field: string, message: string) => void): void {
  const single = ["input_micros_per_million_tokens", "output_micros_per_million_tokens"] as const;
  const given = single.filter((field) => values[field] !== undefined);
  if (values.prices) {
    for (const field of given) wrong(field, 'must not be given together with "prices"');
  } else if (given.length === 0) {
    wrong("prices", "is missing");
  } else {
    for (const field of single) if (!given.includes(field)) wrong(field, "is missing");
  }
}

/** The prices of values that passed the check. */
export function pricesOf(values: PriceValues): Prices {
  const { input_micros_per_million_tokens: input = 0n, output_micros_per_million_tokens: output = 0n } =
    values;
  return values.prices ?? tokenPrices(input, output);
}
