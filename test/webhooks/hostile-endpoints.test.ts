import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { AddressRanges } from "../../src/domain/network.ts";
import { DeliveryAddresses } from "../../src/webhooks/addresses.ts";
import { Sender } from "../../src/webhooks/sender.ts";

const sender = new Sender(new DeliveryAddresses(new AddressRanges("127.0.0.1/32"), () => false), "test", Date.now);
afterAll(() => sender.close());

/** Sends an event to a server of this machine. */
function send(server: Server) {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const secrets = "whsec_RXhhbXBsZUV4YW1wbGVFeGFtcGxlRXhhbXBsZUV4YW0=";
  return sender.send({ url, secrets }, "evt_1", "{}", new AbortController().signal);
}

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
  expect(await send(server)).toMatchObject(stored);
  server.close();
});

test("an idle connection closes after half a minute, although the endpoint asks for ten", async () => {
  // Only timers are simulated: the connections are real.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let connections = 0;
  const server = createHttpServer((_, response) => {
    response.writeHead(204, { "keep-alive": "timeout=600" }).end();
  });
  server.keepAliveTimeout = 0;
  server.on("connection", () => connections++);
  await once(server.listen(0, "127.0.0.1"), "listening");
  for (const [pauseMs, opened] of [
    [0, 1],
    [25_000, 1],
    [32_000, 2],
  ] as const) {
    await vi.advanceTimersByTimeAsync(pauseMs);
    const sending = send(server);
    // Undici looks at an idle connection in a timer before it is used.
    await vi.advanceTimersByTimeAsync(10);
    expect((await sending).status).toBe(204);
    expect(connections).toBe(opened);
  }
  server.closeAllConnections();
  server.close();
});
