import { isDeepStrictEqual } from "node:util";
import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import { priceItem, priceRates } from "../database/driver/batcher.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Model } from "../domain/model.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";
import { discountedPrices, type Prices, type PriceTier, type Rates } from "../domain/price.ts";
import type { AdmittedKey } from "../keys/admit.ts";

/** A version of the prices of a model. */
export type PriceRow = sql.ListPricesRow;

/** The models with the versions of their prices. Prices that differ from the latest version become a new one. */
export async function registerPrices(database: Cells, models: readonly Model[]): Promise<Model[]> {
  const versions = await versionsOf(database, models);
  return models.map((model) => {
    const priceVersion = versions.get(model.id);
    if (priceVersion === undefined) throw new Error(`the prices of ${model.id} have no version`);
    return { ...model, priceVersion };
  });
}

type Versions = ReadonlyMap<string, number>;

async function versionsOf(database: Cells, models: readonly Model[]): Promise<Versions> {
  const items = priceItem.arrayOf(models.map(({ id, prices }) => ({ model: id, rates: arrayOfRates(prices) })));
  try {
    const rows = await sql.registerPrices(database.home, { items });
    await database.share();
    return new Map(rows.map(({ model, version }) => [model, version]));
  } catch (error) {
    // The other cells have copies, so a server can start without the first cell if no price has changed.
    for (const cell of database.all.slice(1)) {
      const known = await copiedVersions(cell, models).catch(() => undefined);
      if (known) return known;
    }
    throw error;
  }
}

/** Undefined if the prices of a model differ from the latest version. */
async function copiedVersions(cell: FunctionCaller, models: readonly Model[]): Promise<Versions | undefined> {
  const versions = new Map<string, number>();
  for (const { id, prices } of models) {
    const [row] = await sql.listPrices(cell, { model: id, before: 0, limit: 1 });
    if (!row || !isDeepStrictEqual(pricesOfRow(row), prices)) return undefined;
    versions.set(id, row.version);
  }
  return versions;
}

/** Latest first. */
export async function listPrices(database: Cells, model: string, page: Page) {
  if (!/^\d{0,9}$/.test(page.after)) throw badToken();
  const before = Number(page.after);
  const rows = await sql.listPrices(database.home, { model, before, limit: page.size + 1 });
  return cutPage(rows, page, ({ version }) => String(version));
}

/** A version of an account's own prices. */
export type AccountPriceRow = sql.AccountPriceView;

/** A discount or prices of its own; with neither, those before end. */
export type AccountPriceChange = {
  readonly accountId: string;
  readonly model: string;
  readonly discount: number | undefined;
  readonly prices: Prices | undefined;
};

export async function setAccountPrices(
  database: Cells,
  action: Action,
  { accountId, model, discount, prices }: AccountPriceChange,
): Promise<AccountPriceRow> {
  const rates = prices && arrayOfRates(prices);
  const values = { lane: laneOfId(accountId), accountId, model, discount, rates };
  const [row] = await sql.setAccountPrices(database, action, values);
  return row as AccountPriceRow;
}

/** Latest first. */
export async function listAccountPrices(database: Cells, accountId: string, page: Page) {
  if (!/^\d{0,9}$/.test(page.after)) throw badToken();
  const lane = laneOfId(accountId);
  const range = { before: Number(page.after), limit: page.size + 1 };
  const rows = await sql.listAccountPrices(database.at(lane), { lane, accountId, ...range });
  return cutPage(rows, page, ({ version }) => String(version));
}

/** The prices of an account, with those that a model has for it. */
type PriceList = {
  readonly version: number;
  /** By model; the empty id stands for all models. */
  readonly rows: Promise<ReadonlyMap<string, AccountPriceRow>>;
  readonly models: WeakMap<Model, Model>;
};

/** Accounts whose prices are known. The limit bounds the memory. */
const MAX_KNOWN_LISTS = 10_000;

/** The prices of accounts. A version never changes, and admission reads which one is valid, so a known one is never out of date. */
export class PriceLists {
  readonly #database: Cells;
  readonly #lists = new Map<string, PriceList>();

  constructor(database: Cells) {
    this.#database = database;
  }

  /** The model at the prices of the account; the same model if the account has no prices of its own for it. */
  modelFor(key: Pick<AdmittedKey, "accountId" | "priceListVersion">, model: Model): Model | Promise<Model> {
    return key.priceListVersion > 0 ? this.#priced(key.accountId, key.priceListVersion, model) : model;
  }

  async #priced(accountId: string, version: number, model: Model): Promise<Model> {
    const list = this.#listOf(accountId, version);
    const rows = await list.rows.catch((error: unknown) => {
      // The next call reads them again.
      if (this.#lists.get(accountId) === list) this.#lists.delete(accountId);
      throw error;
    });
    let priced = list.models.get(model);
    if (!priced) {
      priced = pricedModel(model, rows.get(model.id) ?? rows.get(""));
      list.models.set(model, priced);
    }
    return priced;
  }

  #listOf(accountId: string, version: number): PriceList {
    const known = this.#lists.get(accountId);
    if (known?.version === version) return known;
    const [oldest] = this.#lists.keys();
    if (this.#lists.size >= MAX_KNOWN_LISTS && oldest !== undefined) this.#lists.delete(oldest);
    const list = { version, rows: this.#read(accountId, version), models: new WeakMap() };
    this.#lists.set(accountId, list);
    return list;
  }

  async #read(accountId: string, version: number): Promise<ReadonlyMap<string, AccountPriceRow>> {
    const lane = laneOfId(accountId);
    const rows = await sql.getAccountPrices(this.#database.at(lane), { lane, accountId, version });
    return new Map(rows.map((row) => [row.model, row]));
  }
}

function pricedModel(model: Model, row: AccountPriceRow | undefined): Model {
  if (row === undefined) return model;
  const { version: priceListVersion, discount, prices } = row;
  if (prices !== null) return { ...model, prices: pricesOfRow({ prices }), priceListVersion };
  return { ...model, prices: discountedPrices(model.prices, discount ?? 0), priceListVersion };
}

/** Prices below 2^53, as JSON has them. */
type RatesJson = Record<
  "input" | "cached_input" | "cache_write" | "cache_write_1h" | "output" | "reasoning" | "image" | "request",
  number
>;
type TierJson = RatesJson & { readonly above_input_tokens: number };

export function pricesOfRow({ prices }: Pick<PriceRow, "prices">): Prices {
  const { tiers = [], ...rates } = JSON.parse(prices) as RatesJson & { readonly tiers?: readonly TierJson[] };
  return {
    ...ratesOfJson(rates),
    tiers: tiers.map(({ above_input_tokens: aboveInputTokens, ...ofTier }) => ({
      aboveInputTokens,
      ...ratesOfJson(ofTier),
    })),
  };
}

function ratesOfJson(rates: RatesJson): Rates {
  return {
    input: BigInt(rates.input),
    cachedInput: BigInt(rates.cached_input),
    cacheWrite: BigInt(rates.cache_write),
    cacheWrite1h: BigInt(rates.cache_write_1h),
    output: BigInt(rates.output),
    reasoning: BigInt(rates.reasoning),
    image: BigInt(rates.image),
    request: BigInt(rates.request),
  };
}

/** A column of the type price_rates[]. */
export function arrayOfRates({ tiers, ...rates }: Prices): string {
  return priceRates.arrayOf([{ aboveInputTokens: 0, ...rates }, ...tiers].map(rowOfRates));
}

function rowOfRates({ aboveInputTokens, cachedInput, cacheWrite, cacheWrite1h, ...rates }: PriceTier) {
  return {
    above_input_tokens: aboveInputTokens,
    cached_input: cachedInput,
    cache_write: cacheWrite,
    cache_write_1h: cacheWrite1h,
    ...rates,
  };
}
