import type { ListAccountPricesRequest, ListPricesRequest, SetAccountPricesRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import type { Prices as PricesMessage } from "../../gen/vx/v1/prices_pb.js";
import { accountToRead } from "../accounts/named-account.ts";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { readPage } from "../domain/page.ts";
import { MAX_PRICE, MAX_TIERS, type Prices, type Rates } from "../domain/price.ts";
import { unknownModel } from "../generations/refusals.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import {
  type AccountPriceChange,
  listAccountPrices as listAccountPriceRows,
  listPrices as listPriceRows,
  setAccountPrices as setAccountPriceRow,
} from "./store.ts";
import { viewAccountPrices, viewPriceVersion } from "./views.ts";

/** The model may have been removed from the catalog. */
export async function listPrices({ database, catalog }: Deps, request: ListPricesRequest) {
  const model = catalog.get(request.model)?.id ?? request.model;
  const { rows, nextPageToken } = await listPriceRows(database, model, readPage("prices", request));
  if (rows.length === 0 && request.pageToken === "") throw unknownModel(request.model);
  return { versions: rows.map(viewPriceVersion), nextPageToken };
}

export async function listAccountPrices(deps: Deps, request: ListAccountPricesRequest, call: ApiCall) {
  const account = await accountToRead(deps, call, request.accountId);
  const page = readPage("account_prices", request);
  const { rows, nextPageToken } = await listAccountPriceRows(deps.database, account.id, page);
  return { versions: rows.map(viewAccountPrices), nextPageToken };
}

export async function setAccountPrices(deps: Deps, request: SetAccountPricesRequest, call: ApiCall) {
  const { accountId, reason, change } = request;
  const details = {
    model: request.model,
    change: change.case ?? "removed",
    discount_bps: discountOf(request),
  };
  const row = await makeLoggedChange(deps, call, { target: accountId, reason, details }, async (action) =>
    setAccountPriceRow(deps.database, action, changeOf(deps, request)),
  );
  return { prices: viewAccountPrices(row) };
}

function discountOf({ change }: SetAccountPricesRequest): number | undefined {
  return change.case === "discountBps" ? change.value : undefined;
}

/** What ends may belong to a model that was removed from the catalog. */
function changeOf({ catalog }: Deps, request: SetAccountPricesRequest): AccountPriceChange {
  const { accountId, model: name, change } = request;
  const model = catalog.get(name)?.id ?? (change.case === undefined ? name : undefined);
  if (name !== "" && model === undefined) throw unknownModel(name, catalog.list());
  if (name === "" && change.case === "prices")
    throw DomainError.ofField("model", "is missing; prices belong to one model, a discount to one or all");
  const prices = change.case === "prices" ? pricesOf(change.value) : undefined;
  return { accountId, model: model ?? "", discount: discountOf(request), prices };
}

export function pricesOf({ tiers, ...rates }: PricesMessage): Prices {
  if (tiers.length > MAX_TIERS) throw DomainError.ofField("prices.tiers", `must have at most ${MAX_TIERS} entries`);
  return {
    ...ratesOf(rates, "prices"),
    tiers: tiers.map(({ aboveInputTokens, ...ofTier }, i) => {
      const field = `prices.tiers[${i}]`;
      if (aboveInputTokens <= (tiers[i - 1]?.aboveInputTokens ?? 0n) || aboveInputTokens > MAX_BOUND)
        throw DomainError.ofField(
          `${field}.above_input_tokens`,
          `must be from 1 to ${MAX_BOUND}, and more than that of the tier before`,
        );
      return { aboveInputTokens: Number(aboveInputTokens), ...ratesOf(ofTier, field) };
    }),
  };
}

/** As large as a context window can be. */
const MAX_BOUND = 100_000_000n;

function ratesOf(message: Omit<PricesMessage, "tiers" | "$typeName" | "$unknown">, field: string): Rates {
  const { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, image, request } = message;
  const rates = { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning, image, request };
  for (const [name, price] of Object.entries(rates)) {
    if (price >= 0n && price <= MAX_PRICE) continue;
    const inSnakeCase = name.replace(/[A-Z]|1h/g, (part) => `_${part.toLowerCase()}`);
    throw DomainError.ofField(`${field}.${inSnakeCase}`, `must be from 0 to ${MAX_PRICE}`);
  }
  return rates;
}
