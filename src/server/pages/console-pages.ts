import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { currency } from "../../domain/money.ts";
import type { ServePath } from "../http/message.ts";
import { fill } from "./html.ts";
import { asset, CSS, HTML, JAVASCRIPT, NOTHING, type Packed, pack, TEXT, uncompressed } from "./packed.ts";
import { iconOf, logoPage, type Product } from "./site-header.ts";

const PAGE = new URL("console.html", import.meta.url);
const FOLDER = new URL("../../../gen/console/", import.meta.url);

/** Runs only the script of the page, and connects only to this host. Trusted types make assignments of HTML an error. */
const POLICY = `${NOTHING}; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'`;

/** The names of the files contain a hash of their content. */
const FOREVER = "public, max-age=31536000, immutable";

type Pages = Readonly<Record<"account" | "operator", { readonly script: string; readonly style: string }>>;

const gunzipAsync = promisify(gunzip);

/** A page that the script of `console/` renders, and its files. */
export function consolePages(page: keyof Pages, path: string, product: Product): [string, ServePath][] {
  const { script, style } = (JSON.parse(readFileSync(new URL("pages.json", FOLDER), "utf8")) as Pages)[page];
  const assets = `${path === "/" ? "" : path}/assets`;
  const hashed = (name: string, contentType: string): [string, ServePath] => [
    `${assets}/${name}`,
    asset({
      load: () => readCompressed(name),
      contentType,
      contentSecurityPolicy: NOTHING,
      cacheControl: FOREVER,
    }),
  ];
  const values = {
    name: product.name,
    icon: iconOf(product, `${assets}/logo`),
    support: product.supportUrl ?? "",
    payments: product.takesPayments ? "stripe" : "",
    signIn: product.hasSignIn ? "openid" : "",
    signUp: product.signUp,
    demo: product.offersDemo ? "owner" : "",
    currency: currency().code,
    script: `${assets}/${script}`,
    style: `${assets}/${style}`,
  };
  const load = async () => pack(Buffer.from(fill(await readFile(PAGE, "utf8"), values)));
  const licenses = async () => pack(await readFile(new URL("licenses.txt", FOLDER)));
  return [
    [path, asset({ load, contentType: HTML, contentSecurityPolicy: POLICY })],
    hashed(script, JAVASCRIPT),
    hashed(style, CSS),
    [`${assets}/licenses.txt`, asset({ load: licenses, contentType: TEXT, contentSecurityPolicy: NOTHING })],
    ...(product.logo ? [[`${assets}/logo`, logoPage(product.logo)] satisfies [string, ServePath]] : []),
  ];
}

/** The generator has compressed the file. */
async function readCompressed(name: string): Promise<Packed> {
  const [brotli, gzipped] = await Promise.all([".br", ".gz"].map((ending) => readFile(new URL(name + ending, FOLDER))));
  if (!brotli || !gzipped) throw new Error(`${name} is not compressed`);
  return { ...uncompressed(await gunzipAsync(gzipped)), gzipped, brotli };
}
