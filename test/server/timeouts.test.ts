import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { badRequestResponses } from "../../src/server/http/bad-request.ts";
import { defaultLimits } from "../../src/server/http/limits.ts";
import { Listener } from "../../src/server/http/listener.ts";
import { send } from "../../src/server/http/message.ts";
import { sendHttp1, sendHttp2 } from "../support/raw.ts";
import { talk } from "../support/tcp.ts";

let listener: Listener;
let url: string;

beforeAll(async () => {
  listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    limits: {
      ...defaultLimits,
      prefaceMs: 100,
      headersMs: 100,
      requestMs: 200,
      timeoutCheckMs: 20,
      http1ReadIdleMs: 300,
      http2StreamIdleMs: 100,
      http2SessionIdleMs: 100,
    },
    // Answers after the body has arrived, after a delay, or with more than a caller reads at once.
    handler: (request, response) => {
      if (request.url === "/slow") {
        setTimeout(() => send(response, 200, "text/plain", "slow"), 400);
        return;
      }
      if (request.url === "/large") return send(response, 200, "text/plain", "x".repeat(50_000_000));
      request.on("end", () => send(response, 200, "text/plain", "ok"));
      request.resume();
    },
    refusals: badRequestResponses(() => "req_test"),
  });
  url = `http://127.0.0.1:${(await listener.open()).port}`;
});
afterAll(() => listener.close(0));

test("a connection that sends nothing is closed", async () => {
  expect(await talk(url, "")).toMatchObject({ text: "", closedByServer: true });
});

test("a connection that stops in the middle of the preface is closed", async () => {
  expect((await talk(url, "PRI * HT")).closedByServer).toBe(true);
});

test("incomplete headers time out with 408", async () => {
  expect((await talk(url, "POST / HTTP/1.1\r\nhost: vx\r\nx-slow: ")).text).toMatch(/^HTTP\/1\.1 408 /);
});

test("an incomplete body times out with 408", async () => {
  const { text, closedByServer } = await talk(url, "POST / HTTP/1.1\r\nhost: vx\r\ncontent-length: 10\r\n\r\nabc");
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  expect(closedByServer).toBe(true);
});

test("an HTTP/2 stream with an incomplete request is cancelled", async () => {
  const session = connect(url);
  // The server closes the connection while the session ends.
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("close", resolve));
  session.destroy();
});

test("an HTTP/2 session without streams is closed", async () => {
  const session = connect(url);
  await new Promise((resolve) => session.once("close", resolve));
  expect(session.destroyed).toBe(true);
});

test("a slow call is not idle", async () => {
  expect((await sendHttp1(url, { path: "/slow", method: "GET" })).body.toString()).toBe("slow");
  expect((await sendHttp2(url, { path: "/slow", method: "GET" })).body.toString()).toBe("slow");
});

test("a caller that does not read the response is disconnected: HTTP/1.1", async () => {
  const socket = connectTcp(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write("GET /large HTTP/1.1\r\nhost: vx\r\n\r\n");
  await new Promise((resolve) => socket.once("readable", resolve));
  while (listener.connections > 0) await new Promise((resolve) => setImmediate(resolve));
  socket.destroy();
});

test("a caller that does not read the response is disconnected: HTTP/2", async () => {
  const session = connect(url, { settings: { initialWindowSize: 0 } });
  const stream = session.request({ ":method": "GET", ":path": "/large" });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("close", resolve));
  session.destroy();
});
