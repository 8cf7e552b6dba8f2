import type { Model } from "../domain/model.ts";
import { cutPage, type Page } from "../domain/page.ts";
import type { Catalog } from "../models/catalog.ts";

export type PageOfModels = {
  readonly rows: readonly Model[];
  readonly nextPageToken: string;
  readonly hasMore: boolean;
};

/** Ordered by id. If the catalog changes between two pages, no remaining model is repeated or skipped. */
export function pageOfModels(catalog: Catalog, page: Page): PageOfModels {
  const rest = catalog.list().filter(({ id }) => id > page.after);
  const { rows, nextPageToken } = cutPage(rest.slice(0, page.size + 1), page, ({ id }) => id);
  return { rows, nextPageToken, hasMore: nextPageToken !== "" };
}

/** The last models before the one with this id, ordered by id. */
export function pageOfModelsBefore(catalog: Catalog, { size }: Page, beforeId: string): PageOfModels {
  const rest = catalog.list().filter(({ id }) => id < beforeId);
  return { rows: rest.slice(-size), nextPageToken: "", hasMore: rest.length > size };
}
