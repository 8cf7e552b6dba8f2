import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { create, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, test, vi } from "vitest";
import { shutdownReason } from "../../src/app/drain.ts";
import { writerOf } from "../../src/codec/json/writer.ts";
import { testFile } from "../rest/descriptors.ts";
import { type Mounted, type MountOptions, mount } from "../rest/mount.ts";
import { sendHttp1, sendHttp2 } from "../support/raw.ts";

const file = testFile(
  { Ask: ["int32 count"], Item: ["int32 index", "string text"], List: ["string id", "repeated Item items", "int64 total"] },
  { List: { input: "Ask", output: "List", http: { pattern: { case: "get", value: "/v1/items" } } } },
);
const LIST = `/${file.service.typeName}/List`;
const output = file.message("List");
/** Each item has a kilobyte. */
const LARGE = 2_000;
const ENDLESS = 200_000;

/** How many items have been encoded. */
let encoded = 0;

class Item implements Message {
  readonly $typeName = "test.v1.Item";
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }

  get text(): string {
    encoded++;
    return `${this.index} `.repeat(200).slice(0, 1_000);
  }
}

const listOf = (count: number) => ({
  id: "a",
  items: Array.from({ length: count }, (_, i) => new Item(i)),
  total: 9_007_199_254_740_993n,
});
const messageOf = (count: number) => create(output, listOf(count) as never);

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  encoded = 0;
});

async function serve(options: MountOptions = {}): Promise<Mounted> {
  const list = async ({ count }: { count: number }) => listOf(count);
  const server = await mount(file, { methods: { list }, ...options });
  cleanups.push(() => server.stop());
  return server;
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const askOf = (count: number) => toBinary(file.message("Ask"), create(file.message("Ask"), { count } as never));

describe("REST", () => {
  const get = (url: string, count: number, headers: Record<string, string> = {}, method = "GET") =>
    sendHttp1(url, { method, path: `/v1/items?count=${count}`, headers });

  test("a large answer has the bytes of the whole message", async () => {
    const { url } = await serve();
    const large = await get(url, LARGE);
    expect(large.body.toString()).toBe(writerOf(output)(messageOf(LARGE)));
    expect(large.headers["content-type"]).toBe("application/json");
    expect(large.headers["content-length"]).toBeUndefined();
    expect(large.headers.vary).toBe("accept-encoding");
  });

  test("an answer of up to 256 KiB has its length", async () => {
    const { url } = await serve();
    const short = await get(url, 200);
    expect(Number(short.headers["content-length"])).toBe(short.body.length);
    expect(short.body.toString()).toBe(writerOf(output)(messageOf(200)));
  });

  test.each([
    ["gzip", gunzipSync],
    ["br", brotliDecompressSync],
  ] as const)("a large answer is compressed as %s", async (encoding, decompress) => {
    const { url } = await serve();
    const { headers, body } = await get(url, LARGE, { "accept-encoding": encoding });
    expect(headers["content-encoding"]).toBe(encoding);
    expect(body.length).toBeLessThan(500_000);
    expect(decompress(body).toString()).toBe(writerOf(output)(messageOf(LARGE)));
  });

  test("HEAD of a large answer has no body", async () => {
    const { url } = await serve();
    const answer = await get(url, LARGE, {}, "HEAD");
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBe(0);
  });
});

test("a large answer to HTTP/1.0 ends with the connection", async () => {
  const { url } = await serve();
  const socket = connectTcp(Number(new URL(url).port), "127.0.0.1");
  socket.write(`GET /v1/items?count=${LARGE} HTTP/1.0\r\nconnection: keep-alive\r\n\r\n`);
  const [head, body] = (await text(socket)).split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  expect(head).toMatch(/connection: close/i);
  expect(head).not.toMatch(/transfer-encoding/i);
  expect(body).toBe(writerOf(output)(messageOf(LARGE)));
});

const FORMATS = [
  ["gRPC", "application/grpc", sendHttp2],
  ["gRPC-Web with JSON", "application/grpc-web+json", sendHttp2],
  ["Connect", "application/proto", sendHttp1],
  ["Connect with JSON", "application/json", sendHttp2],
] as const;

describe.each(FORMATS)("%s", (_name, type, send) => {
  const isEnveloped = type.includes("grpc");
  const isJson = type.includes("json");
  const bodyOf = (count: number) => {
    const ask = isJson ? Buffer.from(JSON.stringify({ count })) : askOf(count);
    return isEnveloped ? framed(ask) : ask;
  };

  test("a large answer has the bytes of the whole message, uncompressed", async () => {
    const { url, ended } = await serve();
    const headers = { "content-type": type, te: "trailers", "accept-encoding": "gzip", "grpc-accept-encoding": "gzip" };
    const answer = await send(url, { path: LIST, headers, body: bodyOf(LARGE) });
    const message = messageOf(LARGE);
    const whole = isJson ? Buffer.from(toJsonString(output, message)) : toBinary(output, message);
    const expected = isEnveloped ? framed(whole) : Buffer.from(whole);
    expect(answer.body.subarray(0, expected.length).equals(expected)).toBe(true);
    const rest = answer.body.subarray(expected.length + 5).toString();
    expect(rest).toBe(type.startsWith("application/grpc-web") ? "grpc-status: 0\r\n" : "");
    if (type.startsWith("application/grpc") && !type.includes("web")) expect(answer.headers["grpc-status"]).toBe("0");
    expect(answer.headers["content-encoding"]).toBeUndefined();
    await vi.waitFor(() => expect(ended).toMatchObject([{ code: 0, failure: undefined }]));
  });

  test("a caller that does not read pauses the encoding, until it leaves", async () => {
    const { url, ended } = await serve();
    const session = connectHttp2(url, { settings: { initialWindowSize: 65_535 } });
    cleanups.push(() => session.destroy());
    const stream = session.request({ ":method": "POST", ":path": LIST, "content-type": type });
    stream.on("error", () => undefined);
    stream.end(bodyOf(10_000));
    await once(stream, "response");
    await untilPaused(() => new Promise((resolve) => session.ping(resolve)));
    // Twice over gRPC: an envelope begins with its length.
    expect(encoded % 10_000).toBeLessThan(2_000);
    expect(ended).toEqual([]);
    stream.close(8);
    await vi.waitFor(() => expect(ended).toMatchObject([{ code: Code.Canceled }]));
  });
});

/** Waits until nothing is encoded between two answers of the server. */
async function untilPaused(askServer: () => Promise<unknown>): Promise<void> {
  for (let before = -1; before !== encoded || encoded === 0; ) {
    before = encoded;
    await askServer();
  }
}

async function openUnread(url: string): Promise<{ call: ClientRequest; response: IncomingMessage }> {
  const call = httpRequest(`${url}/v1/items?count=${ENDLESS}`, { agent: false });
  call.on("error", () => undefined);
  call.end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  await untilPaused(() => sendHttp1(url, { method: "GET", path: "/v1/items?count=0" }));
  return { call, response };
}

describe("an answer over HTTP/1.1 that is not read", () => {
  test("is encoded only as far as buffers have room, and ends when its caller leaves", async () => {
    const { url, ended } = await serve();
    const { call } = await openUnread(url);
    expect(encoded).toBeLessThan(24_000);
    call.destroy();
    await vi.waitFor(() => expect(ended.at(-1)).toMatchObject({ code: Code.Canceled }));
  });

  test("is cut off at the end of a drain, so that it does not look complete", async () => {
    const shutdown = new AbortController();
    const { url, ended } = await serve({ shutdownSignal: shutdown.signal });
    const { response } = await openUnread(url);
    shutdown.abort(shutdownReason());
    await vi.waitFor(() => expect(ended.at(-1)).toMatchObject({ failure: { reason: "unavailable" } }));
    await expect(response.toArray()).rejects.toThrow("aborted");
  });
});
