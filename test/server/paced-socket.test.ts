import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { PacedSocket, ReadingTurns } from "../../src/server/http/paced-socket.ts";

const BODY = Buffer.from(Array.from({ length: 1_000_000 }, (_, at) => at % 251));

const bytesOf = (pieces: readonly Buffer[]) => pieces.reduce((sum, { length }) => sum + length, 0);

/** Sends the body on a connection, and passes the other end to `read`, until all of it was read. */
async function received(read: (socket: PacedSocket) => Promise<void>, turns = new ReadingTurns(1_000)): Promise<void> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const caller = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [raw] = (await once(server, "connection")) as [Socket];
  const socket = new PacedSocket(raw, { turns, firstBytes: Buffer.alloc(0), lingerMs: 1_000 });
  caller.write(BODY);
  await read(socket);
  socket.destroy();
  caller.destroy();
  server.close();
}

test("the memory of large pieces of a body is freed when they were read", async () => {
  const copies: Buffer[] = [];
  const pieces: Buffer[] = [];
  await received(async (socket) => {
    socket.expectBody(BODY.length);
    socket.on("data", (piece: Buffer) => {
      copies.push(Buffer.from(piece));
      pieces.push(piece);
    });
    while (bytesOf(copies) < BODY.length) await once(socket, "data");
  });
  expect(Buffer.concat(copies).equals(BODY)).toBe(true);
  const kept = pieces.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
  expect(kept).toBeLessThan(BODY.length / 4);
});

test("pieces that wait for their reader are not freed", async () => {
  const pieces: Buffer[] = [];
  await received(async (socket) => {
    socket.expectBody(BODY.length);
    for await (const piece of socket) {
      pieces.push(Buffer.from(piece as Buffer));
      if (bytesOf(pieces) === BODY.length) break;
    }
  });
  expect(Buffer.concat(pieces).equals(BODY)).toBe(true);
});

test("work that a piece causes after the tick in which it is read counts before the next piece", async () => {
  const turns = new ReadingTurns(8);
  const perTurn: number[] = [];
  let pieces = 0;
  await received(async (socket) => {
    socket.on("data", () => {
      pieces++;
      process.nextTick(() => turns.count(8));
    });
    while (pieces < 16) {
      const before = pieces;
      await nextTurn();
      perTurn.push(pieces - before);
    }
  }, turns);
  expect(Math.max(...perTurn)).toBe(1);
});
