import type { Model } from "../domain/model.ts";
import { cutPage, type Page } from "../domain/page.ts";
import type { Catalog } from "../models/catalog.ts";

/** Ordered by id. If the catalog changes between two pages, no remaining model is repeated or skipped. */
export function pageOfModels(catalog: Catalog, page: Page): { rows: Model[]; nextPageToken: string } {
  const rest = catalog.list().filter(({ id }) => id > page.after);
  return cutPage(rest.slice(0, page.size + 1), page, ({ id }) => id);
}
