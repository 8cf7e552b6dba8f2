import { readFileSync } from "node:fs";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { useOwnApp } from "../support/app.ts";
import { type RawRequest, sendHttp1 } from "../support/raw.ts";

const NAME = 'Acme <script>alert("1")</script>';

const app = useOwnApp({
  env: { VX_PRODUCT_NAME: NAME, VX_SUPPORT_URL: "https://help.example.com/?a='" },
});

describe.each([
  ["the customer page", "/account", "/account/assets/", () => app.url],
  ["the operator console", "/", "/assets/", () => app.adminUrl],
] as const)("%s", (_, path, assets, url) => {
  const get = (target: string, headers: RawRequest["headers"] = {}) => sendHttp1(url(), { method: "GET", path: target, headers });

  async function filesOf(): Promise<string[]> {
    const source = (await get(path)).body.toString();
    return [...source.matchAll(/<(?:script|link)[^>]* (?:src|href)="(\/[^"]*)"/g)].map(([, file]) => file ?? "");
  }

  test("runs only scripts and styles of this server, and is revalidated each time", async () => {
    const { status, headers, body } = await get(path);
    expect([status, headers["cache-control"], headers["set-cookie"]]).toEqual([200, "no-cache", undefined]);
    const rules = new Map(
      (headers["content-security-policy"] ?? "").split("; ").map((rule) => {
        const [name = "", ...values] = rule.split(" ");
        return [name, values.join(" ")];
      }),
    );
    expect(Object.fromEntries(rules)).toEqual({
      "default-src": "'none'",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "img-src": "'self' data:",
      "connect-src": "'self'",
      "require-trusted-types-for": "'script'",
      "trusted-types": "'none'",
    });
    expect(body.toString()).not.toMatch(/<script(?![^>]*\bsrc="\/)|<style|style=|\son\w+=|="(https?:)?\/\/(?!help)/);
  });

  test("shows the name of the product as text", async () => {
    const source = (await get(path)).body.toString();
    expect(source).not.toContain("<script>alert");
    expect(source).toContain("<title>Acme &#60;script&#62;");
  });

  test("has files that are cached forever, equal in every encoding, and found under no other name", async () => {
    const files = await filesOf();
    expect(files).toEqual([expect.stringMatching(/-[\w-]{8}\.css$/), expect.stringMatching(/-[\w-]{8}\.js$/)]);
    for (const file of files) {
      expect(file.startsWith(assets)).toBe(true);
      const plain = await get(file);
      expect([plain.status, plain.headers["cache-control"]]).toEqual([200, "public, max-age=31536000, immutable"]);
      const brotli = await get(file, { "accept-encoding": "gzip, deflate, br, zstd" });
      const gzip = await get(file, { "accept-encoding": "gzip, br;q=0" });
      expect([brotli, gzip].map(({ headers }) => headers["content-encoding"])).toEqual(["br", "gzip"]);
      expect(brotliDecompressSync(brotli.body)).toEqual(plain.body);
      expect(gunzipSync(gzip.body)).toEqual(plain.body);
      expect((await get(file.replace(/-[\w-]{8}\./, "-00000000."))).status).toBe(404);
    }
  });

  test("needs at most 250 KB, compressed as gzip", async () => {
    const sizes = await Promise.all(
      (await filesOf()).map(async (file) => (await get(file, { "accept-encoding": "gzip" })).body.length),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(250_000);
  });

  test("names the licenses of the packages in it", async () => {
    const { status, body } = await get(`${assets}licenses.txt`);
    expect([status, body.toString()]).toEqual([200, readFileSync("gen/console/licenses.txt", "utf8")]);
    for (const name of ["preact", "uplot", "@connectrpc/connect-web", "@bufbuild/protobuf"])
      expect(body.toString()).toContain(name);
  });
});

test("each listener serves only its own page", async () => {
  const status = async (url: string, path: string) => (await sendHttp1(url, { method: "GET", path })).status;
  expect(await status(app.adminUrl, "/account")).toBe(404);
  const operatorFile = /"\/assets\/(operator-[^"]*\.js)"/.exec(await (await fetch(app.adminUrl)).text())?.[1];
  expect(operatorFile).toBeDefined();
  expect(await status(app.url, `/assets/${operatorFile}`)).toBe(404);
  expect(await status(app.url, `/account/assets/${operatorFile}`)).toBe(404);
});
