import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { send } from "../../src/server/http/message.ts";
import { END_HEADERS, END_STREAM, FLOODS, flood, frame, PREFACE, REQUEST, SETTINGS } from "../support/http2-flood.ts";
import { sendHttp1 } from "../support/raw.ts";
import { listen } from "./listen.ts";

let server: Awaited<ReturnType<typeof listen>>;
let served: number;

beforeEach(async () => {
  served = 0;
  const serve: Parameters<typeof listen>[0] = (_request, response) => {
    served++;
    send(response, 200, "text/plain", "after the packet");
  };
  // A caller that sends PING or SETTINGS without reading is no longer read, and is closed after this time.
  server = await listen(serve, { http2StreamIdleMs: 300 });
});
afterEach(() => server.stop());

const MANY_BYTES = 64 * 1_048_576;

describe("a flooding connection is closed while other connections are served", () => {
  test.each(Object.entries(FLOODS))("with %s", async (_name, next) => {
    const [sent, answer] = await Promise.all([
      flood(server.url, next, MANY_BYTES),
      sendHttp1(server.url, { path: "/", method: "GET" }),
    ]);
    expect(sent).toBeLessThan(MANY_BYTES);
    expect(answer.status).toBe(200);
    expect(served).toBeLessThan(20_000);
  });
});

test("empty DATA frames do not use more and more memory", async () => {
  const before = process.memoryUsage().heapUsed;
  const empty = Buffer.concat(Array(1_000).fill(frame(0, 0, 1, Buffer.alloc(0))));
  await flood(server.url, (round) => (round === 0 ? frame(1, END_HEADERS, 1, REQUEST) : empty), 8 * 1_048_576);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1_048_576);
});

test("a request that is reset in the packet that brings it is not served", async () => {
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(Buffer.concat([PREFACE, SETTINGS]));
  await once(socket, "data");
  const answered = untilData(socket, "after the packet");
  socket.write(
    Buffer.concat([
      ...Array.from({ length: 120 }, (_, i) => [
        frame(1, END_HEADERS | END_STREAM, i * 2 + 1, REQUEST),
        frame(3, 0, i * 2 + 1, Buffer.from([0, 0, 0, 8])),
      ]).flat(),
      frame(1, END_HEADERS | END_STREAM, 241, REQUEST),
    ]),
  );
  await answered;
  expect(served).toBe(1);
  socket.destroy();
});

async function untilData(socket: Socket, text: string): Promise<void> {
  let received = "";
  while (!received.includes(text)) received += String((await once(socket, "data"))[0]);
}
