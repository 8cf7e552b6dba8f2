import { type ClientHttp2Session, type ClientHttp2Stream, type ClientSessionOptions, connect, type Settings } from "node:http2";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bindHealth } from "../../src/server/connect/health.ts";
import { testFile } from "../rest/descriptors.ts";
import { type Mounted, mount } from "../rest/mount.ts";
import { sendHttp1 } from "../support/raw.ts";

const WATCH = "/grpc.health.v1.Health/Watch";
const CHECK = "/grpc.health.v1.Health/Check";
const EMPTY = Buffer.alloc(5);
const file = testFile({ Nothing: ["bool nothing"] }, {});

let server: Mounted;
let watchers: Set<() => void>;
let sessions: ClientHttp2Session[];

beforeEach(async () => {
  sessions = [];
  watchers = new Set();
  server = await mount(file, {
    methods: {},
    limits: { openUnaryCalls: 4, openStreams: 6, openStreamsPerConnection: 2 },
    openRoutes: (router) =>
      bindHealth(router, [], {
        isReady: () => true,
        failedCells: () => [],
        watch: (listener) => {
          watchers.add(listener);
          return () => watchers.delete(listener);
        },
      }),
  });
});
afterEach(async () => {
  for (const session of sessions) session.destroy();
  await server.stop();
});

function openSession(localAddress = "127.0.0.1", settings: Settings = {}): ClientHttp2Session {
  const session = connect(server.url, { localAddress, settings } as ClientSessionOptions);
  sessions.push(session);
  return session;
}

/** Resolves to "" at the first response message, or to the status with which the call ended. */
function watch(session: ClientHttp2Session): Promise<{ status: string; stream: ClientHttp2Stream }> {
  const stream = session.request({ ":method": "POST", ":path": WATCH, "content-type": "application/grpc", te: "trailers" });
  stream.end(EMPTY);
  return new Promise((resolve) => {
    stream.once("data", () => resolve({ status: "", stream }));
    stream.once("response", ({ "grpc-status": status }) => {
      if (status !== undefined) resolve({ status: String(status), stream });
    });
    stream.on("error", () => undefined);
  });
}

/** The gRPC status of a refused call; undefined once a call that is served has response headers. */
function check(session: ClientHttp2Session): Promise<string | undefined> {
  const stream = session.request({ ":method": "POST", ":path": CHECK, "content-type": "application/grpc" });
  stream.end(EMPTY);
  return new Promise((resolve, reject) => {
    stream.once("response", ({ "grpc-status": status }) => resolve(status as string | undefined));
    stream.once("error", reject);
  });
}

test("a connection has a maximum number of streams, and can open another when one ends", async () => {
  const session = openSession();
  const first = await watch(session);
  expect(first.status).toBe("");
  expect((await watch(session)).status).toBe("");
  expect((await watch(session)).status).toBe("14");
  expect((await watch(openSession())).status).toBe("");
  const closed = new Promise((resolve) => first.stream.once("close", resolve));
  first.stream.close(8);
  await closed;
  while (watchers.size > 2) await new Promise((resolve) => setImmediate(resolve));
  expect((await watch(session)).status).toBe("");
});

test("one address gets at most half of the streams, so another address still gets one", async () => {
  const statuses: string[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await watch(openSession())).status);
  expect(statuses).toEqual(["", "", "", "14"]);
  expect((await watch(openSession("127.0.0.2"))).status).toBe("");
  // Health checks are served beside them.
  const headers = { "content-type": "application/json" };
  expect((await sendHttp1(server.url, { path: CHECK, headers, body: "{}" })).status).toBe(200);
});

test("unary calls with unread responses are limited per address", async () => {
  const session = openSession("127.0.0.1", { initialWindowSize: 0 });
  const held = await Promise.all([check(session), check(session)]);
  expect(held).toEqual([undefined, undefined]);
  expect(await check(openSession())).toBe("14");
  expect(await check(openSession("127.0.0.2"))).toBe(undefined);
});

test("a unary call with a body larger than any service name is cancelled", async () => {
  const stream = openSession().request({ ":method": "POST", ":path": CHECK, "content-type": "application/grpc" });
  stream.on("error", () => undefined);
  stream.write(Buffer.concat([Buffer.from([0, 0, 0, 0x20, 0]), Buffer.alloc(8_192)]));
  await new Promise((resolve) => stream.once("close", resolve));
  expect(stream.rstCode).toBe(11);
});
