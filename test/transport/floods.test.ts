import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { badRequestAnswers } from "../../src/transport/bad-request.ts";
import { send } from "../../src/transport/http.ts";
import { Listener } from "../../src/transport/listener.ts";
import { sendHttp1 } from "../support/raw.ts";

let listener: Listener;
let url: string;
let served: number;

beforeEach(async () => {
  served = 0;
  listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    handler: (_request, response) => {
      served++;
      send(response, 200, "text/plain", "ok");
    },
    ...badRequestAnswers(() => "req_test"),
  });
  url = `http://127.0.0.1:${(await listener.open()).port}`;
});
afterEach(() => listener.close(0));

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const SETTINGS = frame(4, 0, 0, Buffer.alloc(0));
/** GET http / of the static table, and a literal :authority. */
const REQUEST = Buffer.from([0x82, 0x86, 0x84, 0x41, 2, 0x76, 0x78]);
const END_STREAM = 1;
const END_HEADERS = 4;

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Sends what it is given, without reading a byte, until the server has enough; resolves to the bytes it took. */
async function flood(next: (round: number) => Buffer, maxBytes: number): Promise<number> {
  const socket: Socket = connect(Number(new URL(url).port), "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("error", () => undefined);
  socket.write(Buffer.concat([PREFACE, SETTINGS]));
  let sent = 0;
  for (let round = 0; !socket.destroyed && sent < maxBytes; round++) {
    const bytes = next(round);
    sent += bytes.length;
    const isTaken = socket.write(bytes);
    if (!isTaken) {
      const drained = new Promise<void>((resolve) => socket.once("drain", () => resolve()));
      await Promise.race([drained, closed]);
    }
  }
  socket.resume();
  if (sent < maxBytes) await closed;
  socket.destroy();
  return sent;
}

const MANY_BYTES = 64 * 1_048_576;

describe("a connection that floods is ended, and others are served meanwhile", () => {
  test.each([
    ["PING", () => Buffer.concat(Array(1_000).fill(frame(6, 0, 0, Buffer.alloc(8))))],
    [
      "SETTINGS",
      () => Buffer.concat(Array(1_000).fill(frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0xff, 0xff])))),
    ],
    [
      "CONTINUATION",
      (round: number) =>
        round === 0
          ? frame(1, END_STREAM, 1, REQUEST)
          : Buffer.concat(Array(100).fill(frame(9, 0, 1, Buffer.from([0, 1, 0x61, 1, 0x62])))),
    ],
    [
      "HEADERS and RST_STREAM",
      (round: number) =>
        Buffer.concat(
          Array.from({ length: 500 }, (_, i) => {
            const stream = (round * 500 + i) * 2 + 1;
            return Buffer.concat([
              frame(1, END_HEADERS | END_STREAM, stream, REQUEST),
              frame(3, 0, stream, Buffer.from([0, 0, 0, 8])),
            ]);
          }),
        ),
    ],
  ])("with %s", async (_name, next) => {
    const [sent, answer] = await Promise.all([
      flood(next, MANY_BYTES),
      sendHttp1(url, { path: "/", method: "GET" }),
    ]);
    expect(sent).toBeLessThan(MANY_BYTES);
    expect(answer.status).toBe(200);
    expect(served).toBeLessThan(20_000);
  });
});

test("empty frames of a body cost nothing that grows", async () => {
  const before = process.memoryUsage().heapUsed;
  const empty = Buffer.concat(Array(1_000).fill(frame(0, 0, 1, Buffer.alloc(0))));
  await flood((round) => (round === 0 ? frame(1, END_HEADERS, 1, REQUEST) : empty), 8 * 1_048_576);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1_048_576);
});
