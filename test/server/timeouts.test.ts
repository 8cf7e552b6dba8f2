import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { expect, test, vi } from "vitest";
import { send } from "../../src/server/http/message.ts";
import { sendHttp1, sendHttp2 } from "../support/raw.ts";
import { started } from "../support/started.ts";
import { talk } from "../support/tcp.ts";
import { listen } from "./listen.ts";

const LIMITS = {
  prefaceMs: 100,
  headersMs: 100,
  requestMs: 200,
  timeoutCheckMs: 20,
  http1ReadIdleMs: 300,
  http2StreamIdleMs: 100,
  http2SessionIdleMs: 100,
};
const server = started(() =>
  // Answers after the body has arrived, after a delay, or with more than a caller reads at once.
  listen((request, response) => {
    if (request.url === "/slow") {
      setTimeout(() => send(response, 200, "text/plain", "slow"), 400);
      return;
    }
    if (request.url === "/large") return send(response, 200, "text/plain", LARGE);
    request.on("end", () => send(response, 200, "text/plain", "ok"));
    request.resume();
  }, LIMITS),
);
const LARGE = "x".repeat(50_000_000);

test("a connection that sends nothing is closed", async () => {
  expect(await talk(server.url, "")).toMatchObject({ text: "", closedByServer: true });
});

test("a connection that stops in the middle of the preface is closed", async () => {
  expect((await talk(server.url, "PRI * HT")).closedByServer).toBe(true);
});

test("incomplete headers time out with 408", async () => {
  expect((await talk(server.url, "POST / HTTP/1.1\r\nhost: vx\r\nx-slow: ")).text).toMatch(/^HTTP\/1\.1 408 /);
});

test("an incomplete body times out with 408", async () => {
  const { text, closedByServer } = await talk(server.url, "POST / HTTP/1.1\r\nhost: vx\r\ncontent-length: 10\r\n\r\nabc");
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  expect(closedByServer).toBe(true);
});

test("an HTTP/2 stream with an incomplete request is cancelled", async () => {
  const session = connect(server.url);
  // The server closes the connection while the session ends.
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("close", resolve));
  session.destroy();
});

test("an HTTP/2 session without streams is closed", async () => {
  const session = connect(server.url).on("error", () => undefined);
  await new Promise((resolve) => session.once("close", resolve));
  expect(session.destroyed).toBe(true);
});

test("a slow call is not idle", async () => {
  const slow = { path: "/slow", method: "GET" };
  const answers = await Promise.all([sendHttp1(server.url, slow), sendHttp2(server.url, slow)]);
  expect(answers.map(({ body }) => body.toString())).toEqual(["slow", "slow"]);
});

test("a caller that does not read the response is disconnected: HTTP/1.1", async () => {
  const socket = connectTcp(server.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write("GET /large HTTP/1.1\r\nhost: vx\r\n\r\n");
  await new Promise((resolve) => socket.once("readable", resolve));
  await vi.waitUntil(() => server.listener.connections === 0, { interval: 10 });
  socket.destroy();
});

test("a caller that does not read the response is disconnected: HTTP/2", async () => {
  const session = connect(server.url, { settings: { initialWindowSize: 0 } });
  // As above.
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "GET", ":path": "/large" });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("close", resolve));
  session.destroy();
});
