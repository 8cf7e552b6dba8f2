import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect as connectTcp, type Socket } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import type { Limits } from "../../src/server/http/connection-limits.ts";
import type { Listener } from "../../src/server/http/listener.ts";
import { send } from "../../src/server/http/message.ts";
import { END_HEADERS, END_STREAM, frame, PREFACE, REQUEST, SETTINGS } from "../support/http2-flood.ts";
import { listen } from "./listen.ts";

const HEADERS = 1;
const SETTINGS_TYPE = 4;
const GOAWAY = 7;
const ACK = 1;
const MAX_STREAM = 2 ** 31 - 1;
const GET = "GET / HTTP/1.1\r\nhost: vx\r\n\r\n";
/** Longer than a test may take: a close that waits for it fails. */
const DRAIN_MS = 500_000;
const GOAWAY_MS = 30_000;

let listener: Listener;
let port: number;
/** The responses that wait to be sent, if `isHeld`. */
let held: ServerResponse[];
const sockets: Socket[] = [];

async function open(limits: Partial<Limits>, isHeld = false): Promise<void> {
  held = [];
  const answer: Parameters<typeof listen>[0] = (_request, response) => {
    if (isHeld) held.push(response as ServerResponse);
    else send(response, 200, "text/plain", "served");
  };
  ({ listener, port } = await listen(answer, limits));
}

afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
});

const closeGracefully = () => listener.close(DRAIN_MS, () => undefined, true);

async function dial(): Promise<Socket> {
  const socket = connectTcp(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

async function reply(socket: Socket): Promise<string> {
  let text = "";
  while (!text.endsWith("served")) text += String((await once(socket, "data"))[0]);
  return text;
}

async function untilHeld(): Promise<void> {
  while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
}

async function connectionsAreRefused(): Promise<void> {
  for (let isRefused = false; !isRefused; ) {
    const socket = connectTcp(port, "127.0.0.1");
    isRefused = await once(socket, "connect").then(
      () => false,
      () => true,
    );
    socket.destroy();
  }
}

test("a request on an idle HTTP/1.1 connection is served while the listener closes, and is its last one", async () => {
  await open({ idleWhileStoppingMs: 60_000 });
  const socket = await dial();
  socket.write(GET);
  expect(await reply(socket)).toMatch(/connection: keep-alive/i);
  const closed = closeGracefully();
  await connectionsAreRefused();
  socket.write(GET);
  expect(await reply(socket)).toMatch(/^HTTP\/1.1 200 .*connection: close/is);
  await closed;
});

test("an idle HTTP/1.1 connection without a request is closed after its time", async () => {
  await open({ idleWhileStoppingMs: 200 });
  const socket = await dial();
  socket.write(GET);
  await reply(socket);
  const ended = once(socket, "end");
  await closeGracefully();
  await ended;
});

test("the response to a request that runs when the listener closes is the last of its connection", async () => {
  await open({ idleWhileStoppingMs: 60_000 }, true);
  const socket = await dial();
  socket.write(GET);
  await untilHeld();
  const closed = closeGracefully();
  for (const response of held) send(response, 200, "text/plain", "served");
  expect(await reply(socket)).toMatch(/connection: close/i);
  await closed;
});

test("a stream whose headers were sent before leaves its connection open for one more request", async () => {
  await open({ idleWhileStoppingMs: 60_000 }, true);
  const socket = await dial();
  socket.write(GET);
  await untilHeld();
  const [stream] = held.splice(0) as [ServerResponse];
  stream.write("part");
  await once(socket, "data");
  const closed = closeGracefully();
  await connectionsAreRefused();
  stream.end("the rest");
  await once(socket, "data");
  socket.write(GET);
  await untilHeld();
  for (const response of held) send(response, 200, "text/plain", "served");
  expect(await reply(socket)).toMatch(/connection: close/i);
  await closed;
});

type Frame = { readonly type: number; readonly stream: number; readonly payload: Buffer };

/** Yields the frames that the server sends, and acknowledges its settings. */
async function* framesOf(socket: Socket): AsyncGenerator<Frame> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const end = 9 + bytes.readUIntBE(0, 3);
      const [type, flags] = [bytes[3] as number, bytes[4] as number];
      if (type === SETTINGS_TYPE && flags === 0) socket.write(frame(SETTINGS_TYPE, ACK, 0, Buffer.alloc(0)));
      yield { type, stream: bytes.readUInt32BE(5), payload: bytes.subarray(9, end) };
      bytes = bytes.subarray(end);
    }
  }
}

const requestOn = (stream: number) => frame(HEADERS, END_STREAM | END_HEADERS, stream, REQUEST);

async function next(frames: AsyncGenerator<Frame>, type: number): Promise<Frame> {
  for (;;) {
    const { value, done } = await frames.next();
    if (done) throw new Error(`the connection ended without a frame of type ${type}`);
    if (value.type === type) return value;
  }
}

const lastStreamOf = ({ payload }: Frame) => payload.readUInt32BE(0);

test("connections that wait to be accepted when the listener closes are served", async () => {
  await open({});
  // The kernel accepts them at once, and the listener one in each turn of the event loop.
  const waiting = Array.from({ length: 20 }, () => connectTcp(port, "127.0.0.1"));
  sockets.push(...waiting);
  const replies = waiting.map(async (socket) => {
    socket.write(GET);
    return await reply(socket);
  });
  await new Promise(process.nextTick);
  const closed = closeGracefully();
  for (const text of await Promise.all(replies)) expect(text).toMatch(/^HTTP\/1.1 200 .*connection: close/is);
  await closed;
});

test("over HTTP/2, streams sent before the first GOAWAY was seen are served, and the final one names the last of them", async () => {
  await open({ goawayMs: GOAWAY_MS, idleWhileStoppingMs: DRAIN_MS });
  const socket = await dial();
  const frames = framesOf(socket);
  socket.write(Buffer.concat([PREFACE, SETTINGS, requestOn(1)]));
  expect((await next(frames, HEADERS)).stream).toBe(1);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const closed = closeGracefully();
  const first = await next(frames, GOAWAY);
  expect([lastStreamOf(first), first.payload.readUInt32BE(4)]).toEqual([MAX_STREAM, 0]);
  socket.write(requestOn(3));
  expect((await next(frames, HEADERS)).stream).toBe(3);
  vi.advanceTimersByTime(GOAWAY_MS);
  const final = await next(frames, GOAWAY);
  expect([lastStreamOf(final), final.payload.readUInt32BE(4)]).toEqual([3, 0]);
  socket.destroy();
  await closed;
});

test("an HTTP/2 session that begins while the listener closes is served, and its first frame is SETTINGS", async () => {
  await open({ goawayMs: GOAWAY_MS, idleWhileStoppingMs: DRAIN_MS });
  const socket = await dial();
  // A second connection has a reply, so the first one was accepted before.
  const other = await dial();
  other.write(GET);
  await reply(other);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const closed = closeGracefully();
  const frames = framesOf(socket);
  socket.write(Buffer.concat([PREFACE, SETTINGS, requestOn(1)]));
  const { value } = await frames.next();
  expect(value?.type).toBe(SETTINGS_TYPE);
  expect((await next(frames, HEADERS)).stream).toBe(1);
  expect(lastStreamOf(await next(frames, GOAWAY))).toBe(MAX_STREAM);
  for (const one of [socket, other]) one.destroy();
  await closed;
});

test("without a grace period, idle connections are closed at once", async () => {
  await open({ idleWhileStoppingMs: 60_000, goawayMs: 60_000 });
  const socket = await dial();
  socket.write(GET);
  await reply(socket);
  await listener.close(DRAIN_MS);
});
