import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { expectNoFailures, useOwnApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { expectError, https, JSON_BODY, jsonOf } from "./answers.ts";

const MAX_BYTES = 4_096;
const BODY = '{"name":"x"}';

const app = useOwnApp({ env: { VX_MAX_BODY_BYTES: String(MAX_BYTES) } });
const key = useTestKey(app);
expectNoFailures(app);

const post = (body: string | Uint8Array, headers: Record<string, string | string[]>, over = sendHttp1) =>
  over(app.url, { path: "/v1/keys", headers: { ...bearer(key.secret), ...headers }, body });

test.each([
  "application/json",
  "Application/JSON",
  "application/json;charset=utf-8",
  'application/json; charset="UTF-8"',
  "application/json ; charset=utf8 ; x=y",
])("%s is accepted as JSON", async (type) => {
  expect(jsonOf(await post(BODY, { "content-type": type })).secret).toMatch(/^vx_live_/);
});

// biome-ignore format: a few lines
test.each([
  "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp",
  "application/json, text/plain", "application/json; charset=latin1", "application/json; charset=utf-16", "application/grpc",
  "application/proto", "", ";", undefined,
])("%j is rejected", async (type) => {
  expectError(await post(BODY, type === undefined ? {} : { "content-type": type }), "unsupported_media_type");
});

test.each([
  ["gzip", gzipSync(BODY)],
  ["GZIP", gzipSync(BODY)],
  ["br", brotliCompressSync(BODY)],
  ["identity", Buffer.from(BODY)],
  ["gzip", Buffer.concat([gzipSync(BODY.slice(0, 4)), gzipSync(BODY.slice(4))])],
])("a body compressed as %s is accepted", async (encoding, body) => {
  const answer = await post(body, { ...JSON_BODY, "content-encoding": encoding });
  expect(jsonOf(answer).secret).toMatch(/^vx_live_/);
});

test.each([
  ["deflate", deflateSync(BODY)],
  ["zstd", Buffer.from(BODY)],
  ["gzip, br", gzipSync(BODY)],
  ["gzip, gzip", gzipSync(gzipSync(BODY))],
  ["constructor", Buffer.from(BODY)],
  ["__proto__", Buffer.from(BODY)],
  ["*", Buffer.from(BODY)],
])("the compression %j is rejected with the list of supported ones", async (encoding, body) => {
  const answer = await post(body, { ...JSON_BODY, "content-encoding": encoding });
  expectError(answer, "unsupported_media_type");
  expect(answer.headers["accept-encoding"]).toBe("gzip, br");
});

test.each([
  ["gzip", Buffer.from(BODY)],
  ["br", Buffer.from(BODY)],
  ["gzip", gzipSync(BODY).subarray(0, -5)],
  ["gzip", gzipSync(BODY).fill(0, 12, 14)],
  ["br", brotliCompressSync(BODY).subarray(0, -3)],
  ["gzip", Buffer.alloc(20)],
])("a body that is not valid %s is rejected", async (encoding, body) => {
  const answer = await post(body, { ...JSON_BODY, "content-encoding": encoding });
  expect(expectError(answer, "invalid_argument").message).toContain(encoding);
});

test.each(https)("a body of the maximum size is accepted, one byte more is rejected, over $name", async ({ send }) => {
  const largest = BODY.padEnd(MAX_BYTES);
  expect((await post(largest, JSON_BODY, send)).status).toBe(200);
  const answer = await post(`${largest} `, JSON_BODY, send);
  expect(expectError(answer, "request_too_large").message).toContain(String(MAX_BYTES));
});

test("the maximum size also applies after decompression", async () => {
  for (const [encoding, compress] of [
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
  ] as const) {
    const headers = { ...JSON_BODY, "content-encoding": encoding };
    expect((await post(compress(BODY.padEnd(MAX_BYTES)), headers)).status).toBe(200);
    expectError(await post(compress(BODY.padEnd(MAX_BYTES + 1)), headers), "request_too_large");
    expectError(await post(compress(Buffer.alloc(2_000_000)), headers), "request_too_large");
  }
});

test.each(https)("the maximum size also applies to a body without an announced size, over $name", async ({ name, send }) => {
  const headers = { ...JSON_BODY, "transfer-encoding": "chunked" };
  const chunked = name === "HTTP/1.1" ? headers : JSON_BODY;
  expect((await post(BODY.padEnd(MAX_BYTES), chunked, send)).status).toBe(200);
  expectError(await post(BODY.padEnd(MAX_BYTES + 1), chunked, send), "request_too_large");
  expectError(await post(BODY.padEnd(1_000_000), chunked, send), "request_too_large");
});
