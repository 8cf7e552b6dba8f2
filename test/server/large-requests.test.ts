import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { expectNoFailures, useTestApp } from "../support/app.ts";
import { useTestKey } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";
import { sendHttp1 } from "../support/raw.ts";
import { binaryOf, refusalOf, wires } from "../support/request-bytes.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const key = useTestKey(app);
const headers = started(() => bearer(key.secret));
expectNoFailures(app);

const PATH = "/vx.v1.GenerateService/Generate";
const MEBIBYTE = 1_048_576;
/** Accepts at most 64 KiB. */
const SMALL = "/vx.v1.KeyService/RevokeKey";
const SPACES = Buffer.alloc(70_000, 0x20);
const BOMBS = { gzip: gzipSync(SPACES), br: brotliCompressSync(SPACES) };

/** The rules are the same for every protocol; the bytes are decoded as a binary message or as JSON. */
describe.each(wires.filter(({ name }) => /Connect/.test(name)))("over $name", (wire) => {
  const send = (message: Uint8Array) => wire.send(app.url, PATH, message, { headers });

  test("a large request within the rules is accepted", async () => {
    const request = {
      model: "none",
      messages: Array(wire.isJson ? 2 : 12).fill({ role: "user", content: "\u{1f600}".repeat(400_000) }),
    };
    const message = wire.isJson ? Buffer.from(JSON.stringify(request)) : binaryOf(GenerateRequestSchema, request);
    const refusal = refusalOf(await send(message));
    expect(refusal).not.toMatch(/INVALID_ARGUMENT|REQUEST_TOO_LARGE|INTERNAL/);
  });

  test("unknown fields of a later version are ignored", async () => {
    const later = wire.isJson ? Buffer.from('{"later":[1,{"a":"b"}]}') : Buffer.from([0xa2, 0x06, 1, 0x61]);
    expect(refusalOf(await send(later))).toMatch(/INVALID_ARGUMENT[\s\S]*model/);
  });

  test("a method with small limits accepts at most 64 KiB", async () => {
    const name = "x".repeat(70_000);
    const message = wire.isJson
      ? Buffer.from(JSON.stringify({ keyId: name }))
      : Buffer.from(`\u000a\u00f0\u00a2\u0004${name}`, "latin1");
    const answer = await wire.send(app.url, SMALL, message, { headers });
    expect(refusalOf(answer)).toMatch(/REQUEST_TOO_LARGE/);
  });
});

/** Protocols differ in what is compressed: the message in its envelope, or the body. */
test.each(wires.flatMap((wire) => (["gzip", "br"] as const).map((encoding) => ({ wire, encoding, name: wire.name }))))(
  "over $name, 70 kB that are compressed as $encoding, and bytes that are not, are rejected by a method with small limits",
  async ({ wire, encoding }) => {
    const send = (message: Uint8Array) => wire.send(app.url, SMALL, message, { headers, encoding });
    expect(refusalOf(await send(BOMBS[encoding]))).toMatch(/REQUEST_TOO_LARGE/);
    expect(refusalOf(await send(Buffer.from("not compressed")))).toMatch(/INVALID_ARGUMENT/);
  },
);

test.each<[string, string | Uint8Array, string?]>([
  ["65 KiB", `{"overlap_seconds":1${" ".repeat(65_536)}}`],
  ["65 KiB, compressed,", BOMBS.gzip, "gzip"],
])("a REST method with small limits refuses %s", async (_what, body, encoding) => {
  const all = { "content-type": "application/json", ...headers, ...(encoding && { "content-encoding": encoding }) };
  const answer = await sendHttp1(app.url, { path: "/v1/keys/key_x:rotate", headers: all, body });
  const { error } = JSON.parse(answer.body.toString());
  expect([answer.status, error.code]).toEqual([413, "request_too_large"]);
});

test("an error lists at most 16 violations and stays small", async () => {
  const messages = Array.from({ length: 200 }, () => ({ role: "x".repeat(1_000), content: "" }));
  const body = JSON.stringify({ model: "none", messages });
  const all = { "content-type": "application/json", ...headers };
  const answer = await sendHttp1(app.url, { path: "/v1/generate", headers: all, body });
  const { error } = JSON.parse(answer.body.toString());
  expect(error.details[1].field_violations).toHaveLength(16);
  expect(error.message).toMatch(/and 184 more$/);
  expect(answer.body.length).toBeLessThan(8_192);
});

test("200 MB of base64 without an announced size are refused once they exceed the limit", async () => {
  const request = httpRequest(`${app.url}/v1/chat/completions`, { method: "POST", headers });
  // The server may close the connection once it has refused the request.
  request.on("error", () => undefined);
  const response = once(request, "response") as Promise<[IncomingMessage]>;
  const isRefused = response.then(
    () => true,
    () => true,
  );
  request.write(
    '{"model":"vx-sandbox-small","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,',
  );
  const piece = "A".repeat(MEBIBYTE);
  let sent = 0;
  for (; sent < 200; sent++) {
    const written = new Promise<false>((resolve) => request.write(piece, () => resolve(false)));
    if (await Promise.race([isRefused, written])) break;
  }
  const [{ statusCode }] = await response;
  expect(statusCode).toBe(413);
  // The limit of 32 MiB, and what the sockets of both sides have.
  expect(sent).toBeLessThan(48);
  request.destroy();
});
