import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AccountPricesSchema, PriceVersionSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import type { PricesSchema } from "../../gen/vx/v1/prices_pb.js";
import type { Prices, Rates } from "../domain/price.ts";
import { type AccountPriceRow, type PriceRow, pricesOfRow } from "./store.ts";

export function viewPrices({ tiers, ...rates }: Prices): MessageInitShape<typeof PricesSchema> {
  return {
    ...viewRates(rates),
    tiers: tiers.map(({ aboveInputTokens, ...ofTier }) => ({
      aboveInputTokens: BigInt(aboveInputTokens),
      ...viewRates(ofTier),
    })),
  };
}

export function viewRates(rates: Rates) {
  const { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, image, request } = rates;
  return { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, image, request };
}

export function viewAccountPrices(row: AccountPriceRow): MessageInitShape<typeof AccountPricesSchema> {
  return {
    version: row.version,
    model: row.model,
    effectiveFrom: timestampFromDate(row.effective_from),
    ...(row.discount === null ? {} : { discountBps: row.discount }),
    ...(row.prices === null ? {} : { prices: viewPrices(pricesOfRow({ prices: row.prices })) }),
  };
}

export function viewPriceVersion(row: PriceRow): MessageInitShape<typeof PriceVersionSchema> {
  return {
    model: row.model,
    version: row.version,
    effectiveFrom: timestampFromDate(row.effective_from),
    prices: viewPrices(pricesOfRow(row)),
  };
}
