import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { chooseEncoding } from "../../src/server/wire/compress.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf, useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { https } from "./answers.ts";

const app = useTestApp();
const key = useTestKey(app);
beforeAll(async () => {
  for (let i = 0; i < 9; i++) await createTestKey(operatorOf(app), { accountId: key.accountId });
});

test.each([
  ["gzip", "gzip"],
  ["br", "br"],
  ["gzip, deflate, br, zstd", "br"],
  ["gzip;q=1, br;q=0.5", "gzip"],
  ["gzip; q=0.5 , br; q=0.4", "gzip"],
  ["GZIP", "gzip"],
  ["*", "br"],
  ["*;q=0.1, gzip;q=0.2", "gzip"],
  ["br;q=0, *", "gzip"],
  ["identity;q=0.5, gzip", "gzip"],
  ["identity, gzip;q=0.5", undefined],
  ["gzip;q=0", undefined],
  ["gzip;q=0, br;q=0, *", undefined],
  ["deflate", undefined],
  ["identity", undefined],
  ["", undefined],
  ["gzip;q=abc", undefined],
  ["gzip;q=2", undefined],
  ["__proto__, constructor", undefined],
  [",,;;q=,", undefined],
  [undefined, undefined],
])("Accept-Encoding %j selects %s", (accepted, encoding) => {
  expect(chooseEncoding(accepted === undefined ? [] : [accepted])).toBe(encoding);
});

const get = (path: string, headers: Record<string, string> = {}) =>
  sendHttp1(app.url, { method: "GET", path, headers: { ...bearer(key.secret), ...headers } });

test("a list is compressed with the preferred encoding and decompresses to the same list", async () => {
  const plain = await get("/v1/keys?page_size=5", { "accept-encoding": "identity" });
  expect(plain.body.length).toBeGreaterThan(1_024);
  for (const [encoding, decompress] of [
    ["gzip", gunzipSync],
    ["br", brotliDecompressSync],
  ] as const) {
    const answer = await get("/v1/keys?page_size=5", { "accept-encoding": encoding });
    expect(answer.headers["content-encoding"]).toBe(encoding);
    expect(Number(answer.headers["content-length"])).toBe(answer.body.length);
    expect(answer.body.length).toBeLessThan(plain.body.length);
    const names = (bytes: Buffer) => bytes.toString().replaceAll(/"last_used_at":"[^"]*"/g, "");
    expect(names(decompress(answer.body))).toBe(names(plain.body));
  }
});

test("compressible responses have Vary: Accept-Encoding", async () => {
  expect((await get("/v1/keys?page_size=5", { "accept-encoding": "gzip" })).headers.vary).toBe("accept-encoding");
  expect((await get("/v1/keys?page_size=5")).headers.vary).toBe("accept-encoding");
  expect((await get("/v1/me", { "accept-encoding": "gzip" })).headers.vary).toBe(undefined);
});

test("small responses and errors are not compressed", async () => {
  for (const path of ["/v1/me", "/v1/nothing"]) {
    expect((await get(path, { "accept-encoding": "br, gzip" })).headers["content-encoding"]).toBe(undefined);
  }
});

test.each(https)("HEAD of a compressed response has its headers and no body, over $name", async ({ send }) => {
  const headers = { ...bearer(key.secret), "accept-encoding": "gzip" };
  const answer = await send(app.url, { method: "HEAD", path: "/v1/keys?page_size=5", headers });
  expect(answer.headers["content-encoding"]).toBe("gzip");
  expect(Number(answer.headers["content-length"])).toBeGreaterThan(100);
  expect(answer.body.length).toBe(0);
});
