import { readFile } from "node:fs/promises";
import { fill } from "./html.ts";
import type { Product } from "./product.ts";
import { siteValues } from "./site-header.ts";

const FILE = new URL("docs.html", import.meta.url);

/** The page around the API reference. */
export async function docsPage(product: Product): Promise<Buffer> {
  return Buffer.from(fill(await readFile(FILE, "utf8"), siteValues(product, "/docs")));
}
