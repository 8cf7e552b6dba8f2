import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { BUILT_IN_MODELS } from "../../src/models/built-in.ts";
import { openApiPage } from "../../src/server/pages/openapi-page.ts";
import { pack } from "../../src/server/pages/packed.ts";
import { PRODUCT } from "../support/product.ts";

const URLS = ["http://one.example", "https://two.example:8443"];

test("documents for different addresses share their memory, compressed or not", async () => {
  const render = await openApiPage(BUILT_IN_MODELS, PRODUCT);
  const [one, two] = await Promise.all(URLS.map((url) => render(url)));
  for (const form of ["plain", "gzipped"] as const) {
    const known = new Set(one?.[form]);
    const own = two?.[form]?.filter((part) => !known.has(part)) ?? [];
    expect(Buffer.concat(own).length).toBeGreaterThan(0);
    expect(Buffer.concat(own).length).toBeLessThan(1_000);
  }
  expect(one?.etag).not.toBe(two?.etag);
});

test.each(URLS)("the compressed document for %s is one complete gzip file", async (url) => {
  const { plain, gzipped = [], bytes } = await (await openApiPage(BUILT_IN_MODELS, PRODUCT))(url);
  const content = Buffer.concat(plain);
  expect(content.length).toBe(bytes);
  expect(JSON.parse(content.toString()).servers[0].url).toBe(url);
  expect(gunzipSync(Buffer.concat(gzipped)).equals(content)).toBe(true);
});

test("responses without compression share the content of a large page", async () => {
  const content = Buffer.alloc(4_000_000);
  const { plain } = await pack(content);
  expect(plain.map((part) => part === content)).toEqual([true]);
});
