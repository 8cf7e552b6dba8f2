import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bindHealth } from "../../src/transport/health.ts";
import { testFile } from "../rest/descriptors.ts";
import { type Mounted, mount } from "../rest/mount.ts";
import { sendHttp1 } from "../support/raw.ts";

const WATCH = "/grpc.health.v1.Health/Watch";
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
    limits: { openCalls: 5, openStreamsPerConnection: 2 },
    openRoutes: (router) =>
      bindHealth(router, [], {
        isReady: () => true,
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

function openSession(): ClientHttp2Session {
  const session = connect(server.url);
  sessions.push(session);
  return session;
}

/** Resolves to "" once the first answer is there, or to the status the call ended with. */
function watch(session: ClientHttp2Session): Promise<{ status: string; stream: ClientHttp2Stream }> {
  const stream = session.request({
    ":method": "POST",
    ":path": WATCH,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(EMPTY);
  return new Promise((resolve) => {
    stream.once("data", () => resolve({ status: "", stream }));
    stream.once("response", ({ "grpc-status": status }) => {
      if (status !== undefined) resolve({ status: String(status), stream });
    });
    stream.on("error", () => undefined);
  });
}

test("one connection can watch twice, not three times, and once more after one is over", async () => {
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

test("one process serves five at a time, whatever their connection and protocol", async () => {
  for (let i = 0; i < 5; i++) expect((await watch(openSession())).status).toBe("");
  expect((await watch(openSession())).status).toBe("14");
  const headers = { "content-type": "application/json" };
  const check = await sendHttp1(server.url, { path: "/grpc.health.v1.Health/Check", headers, body: "{}" });
  expect(check.status).toBe(503);
});
