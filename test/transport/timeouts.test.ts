import { connect } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { badRequestAnswers } from "../../src/transport/bad-request.ts";
import { send } from "../../src/transport/http.ts";
import { defaultLimits } from "../../src/transport/limits.ts";
import { Listener } from "../../src/transport/listener.ts";
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
      http2StreamIdleMs: 100,
      http2SessionIdleMs: 100,
    },
    // Answers only once the body is there.
    handler: (request, response) => {
      request.on("end", () => send(response, 200, "text/plain", "ok"));
      request.resume();
    },
    ...badRequestAnswers(() => "req_test"),
  });
  url = `http://127.0.0.1:${(await listener.open()).port}`;
});
afterAll(() => listener.close(0));

test("a client that sends nothing is closed", async () => {
  expect(await talk(url, "")).toMatchObject({ text: "", closedByServer: true });
});

test("a client that stops in the middle of the preface is closed", async () => {
  expect((await talk(url, "PRI * HT")).closedByServer).toBe(true);
});

test("headers that never end are a 408", async () => {
  expect((await talk(url, "POST / HTTP/1.1\r\nhost: vx\r\nx-slow: ")).text).toMatch(/^HTTP\/1\.1 408 /);
});

test("a body that never ends is given up", async () => {
  const { text, closedByServer } = await talk(
    url,
    "POST / HTTP/1.1\r\nhost: vx\r\ncontent-length: 10\r\n\r\nabc",
  );
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  expect(closedByServer).toBe(true);
});

test("a stream of HTTP/2 on which nothing moves is given up", async () => {
  const session = connect(url);
  const stream = session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("close", resolve));
  session.destroy();
});

test("a session of HTTP/2 without streams is closed", async () => {
  const session = connect(url);
  await new Promise((resolve) => session.once("close", resolve));
  expect(session.destroyed).toBe(true);
});
