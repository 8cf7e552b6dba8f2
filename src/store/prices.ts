import { isDeepStrictEqual } from "node:util";
import type { Model } from "../domain/model.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";
import type { Prices } from "../domain/price.ts";
import { priceItem } from "./batch-items.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";

/** A version of the prices of a model. */
export type PriceRow = {
  model: string;
  version: number;
  input: bigint;
  cached_input: bigint;
  cache_write: bigint;
  output: bigint;
  reasoning: bigint;
  image: bigint;
  request: bigint;
  effective_from: Date;
};

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
  const items = priceItem.arrayOf(models.map(({ id, prices }) => ({ model: id, ...priceFields(prices) })));
  try {
    const rows = await database.home.call<{ model: string; version: number }>("register_prices", items);
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
    const [row] = await cell.call<PriceRow>("list_prices", id, 0, 1);
    if (!row || !isDeepStrictEqual(pricesOfRow(row), prices)) return undefined;
    versions.set(id, row.version);
  }
  return versions;
}

/** Latest first. */
export async function listPrices(database: Cells, model: string, page: Page) {
  if (!/^\d{0,9}$/.test(page.after)) throw badToken();
  const before = Number(page.after);
  const rows = await database.home.call<PriceRow>("list_prices", model, before, page.size + 1);
  return cutPage(rows, page, ({ version }) => String(version));
}

export function pricesOfRow({ cached_input, cache_write, ...row }: PriceRow): Prices {
  const { input, output, reasoning, image, request } = row;
  return { input, cachedInput: cached_input, cacheWrite: cache_write, output, reasoning, image, request };
}

function priceFields({ input, cachedInput, cacheWrite, output, reasoning, image, request }: Prices) {
  return { input, cached_input: cachedInput, cache_write: cacheWrite, output, reasoning, image, request };
}
