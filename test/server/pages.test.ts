import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { type RawRequest, sendHttp1, sendHttp2 } from "../support/raw.ts";

const app = useTestApp();

const get = (path: string, headers: RawRequest["headers"] = {}, method = "GET") => sendHttp1(app.url, { method, path, headers });

const PAGES = [
  ["/", "text/html; charset=utf-8"],
  ["/docs", "text/html; charset=utf-8"],
  ["/docs/assets/docs.js", "text/javascript; charset=utf-8"],
  ["/docs/assets/docs.css", "text/css; charset=utf-8"],
  ["/docs/assets/home.css", "text/css; charset=utf-8"],
  ["/docs/assets/reference.js", "text/javascript; charset=utf-8"],
  ["/docs/assets/licenses.txt", "text/plain; charset=utf-8"],
  ["/account", "text/html; charset=utf-8"],
  ["/account/assets/licenses.txt", "text/plain; charset=utf-8"],
  ["/openapi.json", "application/json"],
] as const;

test.each(PAGES)("%s is served to everyone, compressed and cached, with security headers", async (path, contentType) => {
  const plain = await get(path);
  for (const answer of [plain, await sendHttp2(app.url, { method: "GET", path, headers: {} })]) {
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe(contentType);
    expect(answer.body.length).toBe(Number(answer.headers["content-length"]));
  }
  const { headers } = plain;
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
  expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
  expect(headers["x-content-type-options"]).toBe("nosniff");
  expect(headers["referrer-policy"]).toBe("no-referrer");
  expect(Object.keys(headers).filter((name) => /^(set-cookie|access-control-.*)$/.test(name))).toEqual([]);
  const compressed = await get(path, { "accept-encoding": "br, gzip" });
  expect(compressed.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(compressed.body).equals(plain.body)).toBe(true);
  const head = await get(path, {}, "HEAD");
  expect([head.status, head.body.length]).toEqual([200, 0]);
  expect(head.headers["content-length"]).toBe(headers["content-length"]);
  const again = await get(path, { "if-none-match": headers.etag ?? "" });
  expect([again.status, again.body.length]).toEqual([304, 0]);
  const refused = await get(path, {}, "POST");
  expect([refused.status, refused.headers.allow]).toEqual([405, "GET, HEAD"]);
});

test("the document for the built-in models equals the committed one", async () => {
  expect(JSON.parse((await get("/openapi.json")).body.toString())).toEqual(JSON.parse(readFileSync("gen/openapi.json", "utf8")));
});

test("inline, evaluated and foreign scripts are forbidden", async () => {
  for (const path of ["/", "/docs"]) {
    const { headers, body } = await get(path);
    const scripts = /script-src ([^;]*)/.exec(headers["content-security-policy"] ?? "")?.[1];
    expect(scripts).toBe(path === "/" ? undefined : "'self'");
    expect(body.toString()).not.toMatch(/<script(?![^>]*\bsrc="\/)|\son\w+=|(src|href)="(https?:)?\/\//);
  }
});

test.each(["gzip;q=0", "br", "identity", ""])("accept-encoding %j gets the page uncompressed", async (accepted) => {
  const { headers } = await get("/", { "accept-encoding": accepted });
  expect(headers["content-encoding"]).toBeUndefined();
});
