import type { MessageInitShape } from "@bufbuild/protobuf";
import { AccountPricesSchema, PriceVersionSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import type { PricesSchema } from "../../gen/vx/v1/prices_pb.js";
import { viewOf } from "../api/view.ts";
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
  const { prices, discount, ...others } = row;
  return viewOf(AccountPricesSchema, others, {
    ...(discount === null ? {} : { discountBps: discount }),
    ...(prices === null ? {} : { prices: viewPrices(pricesOfRow({ prices })) }),
  });
}

export function viewPriceVersion(row: PriceRow): MessageInitShape<typeof PriceVersionSchema> {
  return viewOf(PriceVersionSchema, row, { prices: viewPrices(pricesOfRow(row)) });
}
