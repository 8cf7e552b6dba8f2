import { readFile } from "node:fs/promises";
import type { Catalog } from "../../models/catalog.ts";
import type { ServePath } from "../http/message.ts";
import { consolePages } from "./console-pages.ts";
import { docsPage } from "./docs-page.ts";
import { homePage } from "./home-page.ts";
import { openApiPage } from "./openapi-page.ts";
import { asset, CSS, HTML, JAVASCRIPT, NOTHING, pack, TEXT } from "./packed.ts";
import { packEach, rendered } from "./rendered.ts";
import { LOGO_PATH, logoPage, type Product } from "./site-header.ts";

/**
 * The reference page runs our script and the bundle, and connects only to this host. Inline styles must be
 * allowed: the bundle adds style elements to the page, and only one of them supports a nonce.
 */
const REFERENCE = `${NOTHING}; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:`;

const PLAIN = `${NOTHING}; style-src 'self'; img-src 'self' data:`;

/** The pages for people. They need no key, load nothing from other hosts and store nothing in the browser. */
export function pages(catalog: Catalog, product: Product): Map<string, ServePath> {
  const own = (name: string) => new URL(name, import.meta.url);
  const generated = (name: string) => new URL(`../../../gen/reference/${name}`, import.meta.url);
  const file = (url: URL, contentType: string) =>
    asset({ load: async () => pack(await readFile(url)), contentType, contentSecurityPolicy: NOTHING });
  const models = () => catalog.list();
  const { logo } = product;
  return new Map([
    [
      "/",
      rendered({
        models,
        prepare: async (list) => packEach(await homePage(list, product)),
        contentType: HTML,
        contentSecurityPolicy: PLAIN,
      }),
    ],
    [
      "/docs",
      rendered({
        models,
        prepare: async (list) => packEach(await docsPage(list, product)),
        contentType: HTML,
        contentSecurityPolicy: REFERENCE,
      }),
    ],
    ...consolePages("account", "/account", product),
    ["/docs/assets/site.css", file(own("site.css"), CSS)],
    ["/docs/assets/home.css", file(own("home.css"), CSS)],
    ["/docs/assets/docs.css", file(own("docs.css"), CSS)],
    ["/docs/assets/docs.js", file(own("docs.js"), JAVASCRIPT)],
    ["/docs/assets/reference.js", file(generated("reference.js"), JAVASCRIPT)],
    ["/docs/assets/licenses.txt", file(generated("licenses.txt"), TEXT)],
    ...(logo ? [[LOGO_PATH, logoPage(logo)] as const] : []),
    [
      "/openapi.json",
      rendered({
        models,
        prepare: async (list) => {
          const packed = await pack(Buffer.from(await openApiPage(list, product)));
          return () => packed;
        },
        contentType: "application/json",
        contentSecurityPolicy: NOTHING,
      }),
    ],
  ]);
}
