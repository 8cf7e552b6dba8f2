import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { badRequestAnswers } from "../../src/server/errors/bad-request.ts";
import { type Reader, ReadingTurns } from "../../src/server/flood/reading-turns.ts";
import { send } from "../../src/server/http.ts";
import { Listener } from "../../src/server/listener.ts";
import { defaultLimits, type Limits } from "../../src/server/listener-limits.ts";
import { END_HEADERS, END_STREAM, frame, PREFACE, REQUEST, SETTINGS } from "../support/http2-flood.ts";
import { sendHttp1 } from "../support/raw.ts";

const GOAWAY = 7;
const ENHANCE_YOUR_CALM = 11;
const NO_ERROR = 0;

let listener: Listener;
let url: string;
const sockets: Socket[] = [];

async function open(limits: Partial<Limits> = {}): Promise<void> {
  listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    limits: { ...defaultLimits, ...limits },
    handler: (_request, response) => send(response, 200, "text/plain", "served"),
    refusals: badRequestAnswers(() => "req_test"),
  });
  url = `http://127.0.0.1:${(await listener.open()).port}`;
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await listener.close(0);
});

async function dial(): Promise<Socket> {
  const socket = connectTcp(Number(new URL(url).port), "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

/** All that comes until the server closes the connection. */
async function untilClosed(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  await once(socket, "close");
  return Buffer.concat(pieces);
}

/** The codes of the frames that say good-bye. */
function goodbyes(bytes: Buffer): number[] {
  const codes: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === GOAWAY) codes.push(bytes.readUInt32BE(at + 9 + 4));
  }
  return codes;
}

const requests = (count: number) =>
  Array.from({ length: count }, (_, i) => frame(1, END_HEADERS | END_STREAM, i * 2 + 1, REQUEST));

describe("connections of one address", () => {
  test("beyond the limit are closed at once, until others are gone", async () => {
    await open({ connectionsPerAddress: 2 });
    const [first] = [await dial(), await dial()];
    expect((await untilClosed(await dial())).length).toBe(0);
    expect(listener.connections).toBe(2);
    first?.destroy();
    while (listener.connections > 1) await new Promise((resolve) => setImmediate(resolve));
    expect((await sendHttp1(url, { path: "/", method: "GET" })).status).toBe(200);
  });

  test("have no limit where it is 0", async () => {
    await open({ connectionsPerAddress: 0 });
    for (let i = 0; i < 5; i++) await dial();
    expect((await sendHttp1(url, { path: "/", method: "GET" })).status).toBe(200);
  });
});

test("more streams in one packet than may run, each taken back, end the session with ENHANCE_YOUR_CALM", async () => {
  await open({ http2StreamsPerTurn: 100, http2ResetBurst: 1_000 });
  const socket = await dial();
  const taken = requests(150).flatMap((request, i) => [
    request,
    frame(3, 0, i * 2 + 1, Buffer.from([0, 0, 0, 8])),
  ]);
  socket.write(Buffer.concat([PREFACE, SETTINGS, ...taken]));
  expect(goodbyes(await untilClosed(socket))).toContain(ENHANCE_YOUR_CALM);
});

test("all streams a session may have are served when they come in one packet", async () => {
  await open();
  const socket = await dial();
  let text = "";
  socket.write(Buffer.concat([PREFACE, SETTINGS, ...requests(defaultLimits.http2ConcurrentStreams)]));
  while (text.split("served").length <= defaultLimits.http2ConcurrentStreams)
    text += String((await once(socket, "data"))[0]);
});

test("a session that never makes a call is ended, however often it pings", async () => {
  await open({ http2FirstCallMs: 200 });
  const socket = await dial();
  socket.write(Buffer.concat([PREFACE, SETTINGS]));
  const pings = setInterval(() => socket.write(frame(6, 0, 0, Buffer.alloc(8))), 20);
  expect(goodbyes(await untilClosed(socket))).toContain(NO_ERROR);
  clearInterval(pings);
});

test("a session without a call for long is ended, also where the caller does not close the connection", async () => {
  await open({ http2FirstCallMs: 100, http2SessionIdleMs: 100 });
  const socket = connectTcp({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
  sockets.push(socket);
  socket.write(Buffer.concat([PREFACE, SETTINGS, ...requests(1)]));
  socket.resume();
  await once(socket, "end");
  while (listener.connections > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("requests sent without waiting for answers are served up to a limit, then the connection is cut", async () => {
  await open();
  const ask = "GET / HTTP/1.1\r\nhost: vx\r\n\r\n";
  const socket = await dial();
  let text = "";
  socket.write(ask.repeat(20));
  while (text.split("served").length <= 20) text += String((await once(socket, "data"))[0]);
  const greedy = await dial();
  const received = untilClosed(greedy);
  greedy.write(ask.repeat(2_000));
  expect(String(await received).split("served").length).toBeLessThan(100);
});

test("a turn that has had enough reads no other connection, and every one in the end", async () => {
  // A few pieces weigh little, the fifth as much as all of them together and again.
  const { readsPerTurn, wasHeld } = await readInTurns({ perTurn: 2, pieces: 5 });
  expect(Math.max(...readsPerTurn)).toBe(2);
  expect(wasHeld).toBe(true);
});

test("many connections that ask for little are never held", async () => {
  expect((await readInTurns({ perTurn: 8, pieces: 1 })).wasHeld).toBe(false);
});

/** Three times, 40 callers ask for so many pieces of work at the same moment. */
async function readInTurns({ perTurn, pieces }: { perTurn: number; pieces: number }) {
  await open();
  const turns = new ReadingTurns(perTurn);
  const readers: Reader[] = [];
  const readsPerTurn: number[] = [];
  let wasHeld = false;
  let reads = 0;
  let turn = 0;
  const server = createServer((socket) => {
    const reader = turns.add(socket, true);
    readers.push(reader);
    socket.on("error", () => undefined);
    socket.on("data", () => {
      reads++;
      readsPerTurn[turn] = (readsPerTurn[turn] ?? 0) + 1;
      turns.spend(reader, pieces);
      wasHeld ||= readers.some(({ isHeld }) => isHeld);
    });
  });
  let counter = setImmediate(function next() {
    turn++;
    counter = setImmediate(next);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const callers = Array.from({ length: 40 }, () => connectTcp(port, "127.0.0.1"));
  sockets.push(...callers);
  await Promise.all(callers.map((caller) => once(caller, "connect")));
  for (let round = 1; round <= 3; round++) {
    for (const caller of callers) caller.write("x");
    while (reads < 40 * round) await new Promise((resolve) => setImmediate(resolve));
  }
  clearImmediate(counter);
  for (const caller of callers) caller.destroy();
  server.close();
  return { readsPerTurn: readsPerTurn.filter((count) => count > 0), wasHeld };
}
