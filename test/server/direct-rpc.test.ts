import { once } from "node:events";
import { type ClientHttp2Stream, connect, constants, type IncomingHttpHeaders } from "node:http2";
import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ApiCall } from "../../src/api/define-service.ts";
import { shutdownReason } from "../../src/app/drain.ts";
import { DomainError } from "../../src/domain/errors.ts";
import { beforeDeadline } from "../../src/server/interceptors/deadline.ts";
import type { Interceptor } from "../../src/server/interceptors/interceptor.ts";
import { testFile } from "../rest/descriptors.ts";
import { type Mounted, type MountOptions, mount } from "../rest/mount.ts";

const file = testFile(
  { Text: ["string text"] },
  { Reply: { input: "Text", output: "Text" }, Stream: { input: "Text", output: "Text", streams: true } },
);
const UNARY = `/${file.service.typeName}/Reply`;
const STREAM = `/${file.service.typeName}/Stream`;
const POST_GRPC = { ":method": "POST", "content-type": "application/grpc" };
const EMPTY_MESSAGE = Buffer.alloc(5);

type Answer = {
  readonly stream: ClientHttp2Stream;
  readonly headers: Promise<IncomingHttpHeaders>;
  /** The trailers, after the end of the response. */
  readonly trailers: Promise<IncomingHttpHeaders>;
};

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(methods: MountOptions["methods"], options: MountOptions = {}): Promise<Mounted> {
  const server = await mount(file, { ...options, ...(methods && { methods }) });
  cleanups.push(() => server.stop());
  return server;
}

/** Starts a call over HTTP/2 without reading its response. */
function call(url: string, path: string, headers: Record<string, string> = {}): Answer {
  const session = connect(url, { settings: { initialWindowSize: 65_535 } });
  session.on("error", () => undefined);
  cleanups.push(() => session.destroy());
  const stream = session.request({ ...POST_GRPC, ":path": path, te: "trailers", ...headers });
  stream.on("error", () => undefined);
  stream.end(headers["content-type"]?.endsWith("json") ? "{}" : EMPTY_MESSAGE);
  return {
    stream,
    headers: once(stream, "response").then(([received]) => received),
    trailers: once(stream, "trailers").then(([received]) => received),
  };
}

const hang = () => new Promise<never>(() => undefined);

describe("at the end of a drain", () => {
  test.each([
    ["gRPC", "application/grpc"],
    ["gRPC-Web", "application/grpc-web"],
    ["Connect", "application/json"],
  ])("a unary call over %s that ignores the abort gets an error at once", async (_, type) => {
    const shutdown = new AbortController();
    const started = Promise.withResolvers<void>();
    const reply = () => {
      started.resolve();
      return hang();
    };
    const { url } = await serve({ reply }, { shutdownSignal: shutdown.signal });
    const { stream, headers, trailers } = call(url, UNARY, { "content-type": type });
    trailers.catch(() => undefined);
    await started.promise;
    shutdown.abort(shutdownReason());
    const { ":status": status } = await headers;
    const body = Buffer.concat(await stream.toArray()).toString();
    const text = type === "application/grpc" ? String((await trailers)["grpc-status"]) : body;
    expect(status).toBe(type === "application/json" ? 503 : 200);
    expect(text).toMatch(/^14$|grpc-status: 14|"code":"unavailable"/);
  });

  test("a stream that ignores the abort ends with the error after its messages", async () => {
    const shutdown = new AbortController();
    const started = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    async function* stream() {
      yield { text: "one" };
      started.resolve();
      await released.promise;
    }
    const { url, ended } = await serve({ stream }, { shutdownSignal: shutdown.signal });
    const answer = call(url, STREAM);
    await started.promise;
    shutdown.abort(shutdownReason());
    expect(Buffer.concat(await answer.stream.toArray()).toString()).toContain("one");
    expect((await answer.trailers)["grpc-status"]).toBe(String(Code.Unavailable));
    expect(ended).toEqual([]);
    released.resolve();
    await vi.waitFor(() => expect(ended).toMatchObject([{ failure: { reason: "unavailable" } }]));
  });
});

describe("the deadline of a call", () => {
  test.each([
    ["gRPC", { "content-type": "application/grpc", "grpc-timeout": "20m" }],
    ["gRPC-Web", { "content-type": "application/grpc-web", "grpc-timeout": "20000u" }],
    ["Connect", { "content-type": "application/json", "connect-timeout-ms": "20" }],
  ])("over %s aborts its signal", async (_, headers) => {
    const reasons: unknown[] = [];
    const reply = (_request: never, { signal }: ApiCall) =>
      new Promise((_resolve, reject) => {
        const abort = () => {
          reasons.push(signal.reason);
          reject(signal.reason);
        };
        // On a slow machine the deadline passes before the method is called.
        if (signal.aborted) abort();
        else signal.addEventListener("abort", abort);
      });
    const { url, ended } = await serve({ reply });
    const { stream } = call(url, UNARY, headers);
    await stream.toArray();
    expect(reasons).toMatchObject([{ code: Code.DeadlineExceeded }]);
    await vi.waitFor(() => expect(ended).toMatchObject([{ failure: { code: Code.DeadlineExceeded } }]));
  });
});

test("a deadline also ends a call whose body does not arrive", async () => {
  const { url } = await serve({ reply: async () => ({}) });
  const session = connect(url);
  cleanups.push(() => session.destroy());
  const stream = session.request({ ...POST_GRPC, ":path": UNARY, "grpc-timeout": "50m" });
  stream.write(EMPTY_MESSAGE.subarray(0, 2));
  stream.resume();
  const [trailers] = await once(stream, "trailers");
  expect(trailers["grpc-status"]).toBe(String(Code.DeadlineExceeded));
});

test("a deadline that passes before the admission ends the call", async () => {
  const authenticate: Interceptor = () => (call) => beforeDeadline(call, new Promise(() => undefined));
  const { url } = await serve({ reply: async () => ({}) }, { authenticate: [authenticate] });
  const answer = call(url, UNARY, { "grpc-timeout": "20m" });
  answer.stream.resume();
  expect((await answer.trailers)["grpc-status"]).toBe(String(Code.DeadlineExceeded));
});

test("a stream whose caller does not read it is reset at its deadline", async () => {
  async function* stream() {
    for (;;) yield { text: "x".repeat(65_536) };
  }
  const { url, ended } = await serve({ stream });
  const answer = call(url, STREAM, { "grpc-timeout": "100m" });
  await once(answer.stream, "close");
  expect(answer.stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
  await vi.waitFor(() => expect(ended).toMatchObject([{ failure: { code: Code.DeadlineExceeded } }]));
});

test.each([
  ["gRPC", "application/grpc", 2],
  ["gRPC", "application/grpc", 0x81],
  ["Connect", "application/connect+proto", 4],
])("a message over %s (%s) with the flags %i is refused", async (_, type, flags) => {
  const { url, ended } = await serve({ stream: async function* () {} });
  const session = connect(url);
  cleanups.push(() => session.destroy());
  const stream = session.request({ ":method": "POST", ":path": STREAM, "content-type": type });
  stream.end(Buffer.from([flags, 0, 0, 0, 0]));
  await stream.toArray();
  await vi.waitFor(() => expect(ended).toMatchObject([{ failure: { reason: "invalid_argument" } }]));
});

test.each([
  ["gRPC", "application/grpc"],
  ["gRPC-Web", "application/grpc-web"],
  ["Connect", "application/json"],
])("an error over %s that repeats half of a surrogate pair reaches the caller", async (_, type) => {
  const error = DomainError.ofField("text", `must not be ${"😀".slice(0, 1)}`);
  const { url } = await serve({ reply: () => Promise.reject(error) });
  const { stream, trailers } = call(url, UNARY, { "content-type": type });
  trailers.catch(() => undefined);
  const body = Buffer.concat(await stream.toArray()).toString();
  const text = type === "application/grpc" ? String((await trailers)["grpc-message"]) : body;
  expect(decodeURIComponent(text)).toContain("text: must not be \ufffd");
});

describe("a caller that disconnects", () => {
  test.each([
    ["resets its stream", (stream: ClientHttp2Stream) => stream.close(constants.NGHTTP2_CANCEL)],
    ["closes its connection", (stream: ClientHttp2Stream) => stream.session?.destroy()],
  ])("and %s aborts the signal of the call", async (_, leave) => {
    const started = Promise.withResolvers<void>();
    const reply = (_request: never, { signal }: ApiCall) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        started.resolve();
      });
    const { url, ended } = await serve({ reply });
    const { stream, headers, trailers } = call(url, UNARY);
    for (const promise of [headers, trailers]) promise.catch(() => undefined);
    await started.promise;
    leave(stream);
    await vi.waitFor(() => expect(ended).toMatchObject([{ failure: { code: Code.Canceled } }]));
  });

  test("before a response is recorded as canceled", async () => {
    const started = Promise.withResolvers<void>();
    const released = Promise.withResolvers<object>();
    const reply = () => {
      started.resolve();
      return released.promise;
    };
    const { url, ended } = await serve({ reply });
    const { stream, headers, trailers } = call(url, UNARY);
    for (const promise of [headers, trailers]) promise.catch(() => undefined);
    await started.promise;
    const { session } = stream;
    stream.close(constants.NGHTTP2_CANCEL);
    await once(stream, "close");
    // The server has handled the reset when it has answered a ping that was sent after it.
    await new Promise((resolve) => session?.ping(resolve));
    released.resolve({});
    await vi.waitFor(() => expect(ended).toMatchObject([{ code: Code.Canceled, failure: undefined }]));
  });
});

describe("a stream over gRPC", () => {
  test("waits for a caller that does not read, and then continues", async () => {
    const pieces = 200;
    let taken = 0;
    async function* stream() {
      for (; taken < pieces; taken++) yield { text: "x".repeat(4_096) };
    }
    const { url } = await serve({ stream });
    const answer = call(url, STREAM);
    await answer.headers;
    await vi.waitUntil(async () => {
      const before = taken;
      await new Promise((resolve) => answer.stream.session?.ping(resolve));
      return taken === before;
    });
    expect(taken).toBeLessThan(pieces);
    expect(Buffer.concat(await answer.stream.toArray()).length).toBeGreaterThan(pieces * 4_096);
    expect((await answer.trailers)["grpc-status"]).toBe("0");
  });

  test("ends after a GOAWAY of the server, which accepts no new one", async () => {
    const released = Promise.withResolvers<void>();
    async function* stream() {
      yield { text: "one" };
      await released.promise;
      yield { text: "two" };
    }
    const server = await mount(file, { methods: { stream } });
    const answer = call(server.url, STREAM);
    const goaway = once(answer.stream.session ?? answer.stream, "goaway");
    await answer.headers;
    const stopped = server.stop(60_000);
    await goaway;
    released.resolve();
    expect(Buffer.concat(await answer.stream.toArray()).toString()).toContain("two");
    expect((await answer.trailers)["grpc-status"]).toBe("0");
    await stopped;
  });
});
