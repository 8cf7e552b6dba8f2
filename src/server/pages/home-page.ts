import { readFile } from "node:fs/promises";
import type { Model } from "../../domain/model.ts";
import { exampleModels } from "../../models/example-model.ts";
import { fill, html } from "./html.ts";
import { modelRows } from "./models-table.ts";
import type { Product } from "./product.ts";
import type { Render } from "./rendered.ts";
import { siteValues } from "./site-header.ts";

const FILE = new URL("home.html", import.meta.url);

/** The start page, with commands that can be pasted: they use the address and a model of this server. */
export async function homePage(models: readonly Model[], product: Product): Promise<Render> {
  const page = await readFile(FILE, "utf8");
  const { model, missing } = exampleModels(models).generation;
  const values = {
    ...siteValues(product, "/"),
    model: model.id,
    note: missing === undefined ? "" : html`<p class="note">${missing.replaceAll("`", "")}</p>`,
    rows: modelRows(models),
  };
  return (url) => fill(page, { ...values, url });
}
