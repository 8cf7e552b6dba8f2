import type { Catalog } from "../../models/catalog.ts";
import type { ServePath } from "../http.ts";
import { asset } from "./asset.ts";
import { homePage } from "./home-page.ts";
import { openApiPage } from "./openapi/openapi-page.ts";
import { rendered } from "./rendered.ts";

const NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * The reference page runs our script and the bundle, and connects only to this host. Inline styles must be
 * allowed: the bundle adds style elements to the page, and only one of them supports a nonce.
 */
const REFERENCE = `${NOTHING}; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:`;

const PLAIN = `${NOTHING}; style-src 'self'; img-src data:`;

/** The pages for people. They need no key, load nothing from other hosts and store nothing in the browser. */
export function pages(catalog: Catalog): Map<string, ServePath> {
  const own = (name: string) => new URL(name, import.meta.url);
  const generated = (name: string) => new URL(`../../../gen/reference/${name}`, import.meta.url);
  const models = () => catalog.list();
  return new Map([
    ["/", rendered({ models, prepare: homePage, contentType: HTML, contentSecurityPolicy: PLAIN })],
    ["/docs", asset({ file: own("docs.html"), contentType: HTML, contentSecurityPolicy: REFERENCE })],
    [
      "/docs/assets/home.css",
      asset({ file: own("home.css"), contentType: CSS, contentSecurityPolicy: NOTHING }),
    ],
    [
      "/docs/assets/docs.css",
      asset({ file: own("docs.css"), contentType: CSS, contentSecurityPolicy: NOTHING }),
    ],
    [
      "/docs/assets/docs.js",
      asset({ file: own("docs.js"), contentType: JAVASCRIPT, contentSecurityPolicy: NOTHING }),
    ],
    [
      "/docs/assets/reference.js",
      asset({ file: generated("reference.js"), contentType: JAVASCRIPT, contentSecurityPolicy: NOTHING }),
    ],
    [
      "/docs/assets/licenses.txt",
      asset({ file: generated("licenses.txt"), contentType: TEXT, contentSecurityPolicy: NOTHING }),
    ],
    [
      "/openapi.json",
      rendered({
        models,
        prepare: openApiPage,
        contentType: "application/json",
        contentSecurityPolicy: NOTHING,
      }),
    ],
  ]);
}

const HTML = "text/html; charset=utf-8";
const CSS = "text/css; charset=utf-8";
const JAVASCRIPT = "text/javascript; charset=utf-8";
const TEXT = "text/plain; charset=utf-8";
