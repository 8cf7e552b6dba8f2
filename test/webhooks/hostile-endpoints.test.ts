import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, expect, test } from "vitest";
import { AddressRanges } from "../../src/domain/network.ts";
import { DeliveryAddresses } from "../../src/webhooks/addresses.ts";
import { Sender } from "../../src/webhooks/sender.ts";

const sender = new Sender(new DeliveryAddresses(new AddressRanges("127.0.0.1/32"), () => false), "test", Date.now);
afterAll(() => sender.close());

function writeForever(socket: Socket, text: string): void {
  const write = () => {
    while (!socket.destroyed && socket.write(text));
  };
  socket.on("drain", write);
  write();
}

const OK = "HTTP/1.1 200 OK\r\n";
/** What an endpoint writes, and what is stored of it. */
const ANSWERS: Readonly<Record<string, readonly [string | ((socket: Socket) => void), object]>> = {
  "no HTTP": ["hello", { status: undefined, error: expect.stringContaining("does not match the HTTP/1.1") }],
  "endless headers": [
    (socket) => {
      socket.write(OK);
      writeForever(socket, `x-header: ${"y".repeat(1_000)}\r\n`);
    },
    { status: undefined, error: expect.stringContaining("Headers Overflow") },
  ],
  "endless answers that are not final": [
    (socket) => writeForever(socket, "HTTP/1.1 100 Continue\r\n\r\n"),
    { status: undefined, error: expect.stringContaining("bad response") },
  ],
  "another protocol": [
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    { status: undefined, error: expect.stringContaining("bad upgrade") },
  ],
  "less than it announces": [`${OK}content-length: 10\r\n\r\nabc`, { status: 200, error: "", answer: "abc" }],
  "a chunk without end": [
    `${OK}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nabc`,
    { status: 200, error: "", answer: "abc" },
  ],
  "two answers": [
    `${OK}content-length: 2\r\n\r\nokHTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n`,
    { status: 200, error: "", answer: "ok" },
  ],
  "a pause of millennia": [
    "HTTP/1.1 503 Busy\r\nretry-after: 99999999999999999999\r\ncontent-length: 0\r\n\r\n",
    { status: 503, retryAfterMs: undefined },
  ],
};

test.each(Object.entries(ANSWERS))("an endpoint that sends %s is no harm", async (_, [answer, stored]) => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => (typeof answer === "string" ? socket.end(answer) : answer(socket)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    secrets: "whsec_RXhhbXBsZUV4YW1wbGVFeGFtcGxlRXhhbXBsZUV4YW0=",
  };
  expect(await sender.send(endpoint, "evt_1", "{}", new AbortController().signal)).toMatchObject(stored);
  server.close();
});
