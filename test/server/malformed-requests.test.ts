import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { beforeEach, expect, test } from "vitest";
import { type HttpResponse, send } from "../../src/server/http/message.ts";
import { started } from "../support/started.ts";
import { listen } from "./listen.ts";

const GET = "GET / HTTP/1.1\r\nhost: vx\r\n\r\n";
const LAST_GET = "GET / HTTP/1.1\r\nhost: vx\r\nconnection: close\r\n\r\n";
const POST = "POST / HTTP/1.1\r\nhost: vx\r\ntransfer-encoding: chunked\r\n\r\n";
const GARBAGE = "garbage\r\n\r\n";
const INVALID_CHUNK = "not a length\r\n";

/** Set by each test. */
let handle: (response: HttpResponse) => void;

const answer = (response: HttpResponse) => send(response, 200, "text/plain", "ok");

const server = started(() =>
  listen((_request, response) => handle(response), { headersMs: 100, requestMs: 200, timeoutCheckMs: 20 }),
);
beforeEach(() => {
  handle = answer;
});

/** Sends the parts, each after the response to the one before, and returns the statuses of all responses. */
async function statusesOf(...parts: string[]): Promise<string[]> {
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => undefined);
  const closed = once(socket, "close");
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  const [first, ...others] = parts;
  socket.write(first as string);
  for (const part of others) {
    await once(socket, "data");
    socket.write(part);
  }
  await closed;
  return [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status as string);
}

test.each([
  ["a malformed request", GARBAGE, "400"],
  ["a request for a tunnel", "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n", "400"],
  ["headers over the limit", `GET / HTTP/1.1\r\nx-long: ${"a".repeat(20_000)}`, "431"],
  ["incomplete headers", "GET / HTTP/1.1\r\nx-slow: ", "408"],
])("%s after a response: the error is sent and the connection closes", async (_what, malformed, status) => {
  expect(await statusesOf(GET, malformed)).toEqual(["200", status]);
});

test("an invalid chunk before the response: the error is sent and the connection closes", async () => {
  handle = () => undefined;
  expect(await statusesOf(POST + INVALID_CHUNK)).toEqual(["400"]);
});

test("an invalid chunk of the second request: the error is sent and the connection closes", async () => {
  let calls = 0;
  handle = (response) => (++calls === 1 ? answer(response) : undefined);
  expect(await statusesOf(GET, POST + INVALID_CHUNK)).toEqual(["200", "400"]);
});

test("an invalid chunk after an early response: the connection closes without a second response", async () => {
  expect(await statusesOf(POST, INVALID_CHUNK)).toEqual(["200"]);
});

test("an incomplete body after an early response: the connection closes without a second response", async () => {
  expect(await statusesOf(POST)).toEqual(["200"]);
});

test("a malformed request during a call: the call gets no response that is not its own", async () => {
  handle = () => undefined;
  expect(await statusesOf(GET + GARBAGE)).toEqual([]);
});

test.each([
  ["in the same packet", [LAST_GET + GARBAGE]],
  ["in a later packet", [LAST_GET, GARBAGE]],
])("data after the last request of a connection is ignored: %s", async (_when, parts) => {
  handle = (response) => {
    (response as ServerResponse).writeProcessing();
    setTimeout(() => answer(response), 50);
  };
  expect(await statusesOf(...parts)).toEqual(["102", "200"]);
});

test("a malformed request during a response: the connection closes without a second response", async () => {
  handle = (response) => {
    (response as ServerResponse).write("part");
  };
  expect(await statusesOf(GET, GARBAGE)).toEqual(["200"]);
});
