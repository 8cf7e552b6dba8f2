import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { defaultLimits, type Limits } from "../../src/server/http/connection-limits.ts";
import type { Listener } from "../../src/server/http/listener.ts";
import { type HttpResponse, send } from "../../src/server/http/message.ts";
import { ReadingTurns } from "../../src/server/http/paced-socket.ts";
import { END_HEADERS, END_STREAM, frame, PREFACE, REQUEST, SETTINGS } from "../support/http2-flood.ts";
import { sendHttp1 } from "../support/raw.ts";
import { listen } from "./listen.ts";

const GOAWAY = 7;
const NO_ERROR = 0;
const ENHANCE_YOUR_CALM = 11;

let listener: Listener;
let url: string;
let handled = 0;
const sockets: Socket[] = [];

async function open(
  limits: Partial<Limits> = {},
  onData?: (chunk: Buffer) => void,
  // After the other requests of the same packet.
  answer = (response: HttpResponse): unknown => setImmediate(() => send(response, 200, "text/plain", "served")),
): Promise<void> {
  handled = 0;
  const handle: Parameters<typeof listen>[0] = (request, response) => {
    handled++;
    if (onData) request.on("data", onData);
    answer(response);
  };
  ({ listener, url } = await listen(handle, limits));
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

async function dialWith(bytes: Buffer): Promise<Socket> {
  const socket = await dial();
  socket.write(bytes);
  return socket;
}

/** The bytes received until the server closes the connection. */
async function untilClosed(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  await once(socket, "close");
  return Buffer.concat(pieces);
}

/** The error codes of the GOAWAY frames. */
function goawayCodes(bytes: Buffer): number[] {
  const codes: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === GOAWAY) codes.push(bytes.readUInt32BE(at + 9 + 4));
  }
  return codes;
}

const requests = (count: number, firstStream = 1) =>
  Array.from({ length: count }, (_, i) => frame(1, END_HEADERS | END_STREAM, firstStream + i * 2, REQUEST));

/** Requests that are reset in the packet that brings them. */
const earlyResets = (count: number, firstStream = 1) =>
  requests(count, firstStream).flatMap((request, i) => [request, frame(3, 0, firstStream + i * 2, Buffer.from([0, 0, 0, 8]))]);

describe("the data of a connection", () => {
  const BODY = Buffer.alloc(1_048_576, "b");
  const NEXT = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

  /** The sizes of the pieces of a body, which another request follows at once. */
  async function piecesOf(headers: string, body: Buffer): Promise<number[]> {
    const sizes: number[] = [];
    await open({}, (chunk) => sizes.push(chunk.length));
    const socket = await dial();
    socket.write(Buffer.concat([Buffer.from(`POST / HTTP/1.1\r\nhost: a\r\n${headers}\r\n\r\n`), body]));
    socket.write(NEXT.repeat(2));
    const received = (await untilClosed(socket)).toString();
    expect(received.split("served")).toHaveLength(3);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(BODY.length);
    return sizes;
  }

  test("is read as it arrives where it is certainly that of one body", async () => {
    const sizes = await piecesOf(`content-length: ${BODY.length}`, BODY);
    expect(Math.max(...sizes)).toBeGreaterThan(4_096);
    // The end of the body can be in one piece with further requests.
    expect(sizes.at(0)).toBeLessThan(4_096);
    expect(sizes.at(-1)).toBeLessThanOrEqual(4_096);
  });

  test("is read in pieces of 4 KiB where the end of the body is not known", async () => {
    const size = BODY.length.toString(16);
    const chunks = Buffer.concat([Buffer.from(`${size}\r\n`), BODY, Buffer.from("\r\n0\r\n\r\n")]);
    expect(Math.max(...(await piecesOf("transfer-encoding: chunked", chunks)))).toBeLessThanOrEqual(4_096);
  });
});

describe("connections of one address", () => {
  test("beyond the limit are closed at once, until others close", async () => {
    await open({ connectionsPerAddress: 2 });
    const [first] = [await dial(), await dial()];
    expect((await untilClosed(await dial())).length).toBe(0);
    expect(listener.connections).toBe(2);
    first?.destroy();
    while (listener.connections > 1) await new Promise((resolve) => setImmediate(resolve));
    expect((await sendHttp1(url, { path: "/", method: "GET" })).status).toBe(200);
  });

  test("are not limited if the limit is 0", async () => {
    await open({ connectionsPerAddress: 0 });
    for (let i = 0; i < 5; i++) await dial();
    expect((await sendHttp1(url, { path: "/", method: "GET" })).status).toBe(200);
  });
});

describe("after many requests that are reset in the packet that brings them", () => {
  const SESSION = Buffer.concat([PREFACE, SETTINGS, ...requests(1)]);
  const EARLY_RESETS = 100;

  /** Resolves when they, and a request before them, have been processed. Returns the connection. */
  async function resetEarly(): Promise<Socket> {
    const socket = await dialWith(Buffer.concat([SESSION, ...earlyResets(EARLY_RESETS, 3)]));
    await untilServed(socket);
    return socket;
  }

  async function untilServed(socket: Socket): Promise<void> {
    let text = "";
    while (!text.includes("served")) text += String((await once(socket, "data"))[0]);
  }

  /** The requests above exceed it. */
  const LOW = { http2EarlyResetBurst: EARLY_RESETS - 1, http2EarlyResetsPerSecond: 0.001 };

  test("new HTTP/2 sessions of the address wait, and HTTP/1.1 does not", async () => {
    await open(LOW);
    await resetEarly();
    const waiting = await dialWith(SESSION);
    expect((await sendHttp1(url, { path: "/", method: "GET" })).status).toBe(200);
    expect(waiting.bytesRead).toBe(0);
  });

  test("a session without running calls is closed at once", async () => {
    await open(LOW);
    await untilClosed(await dialWith(Buffer.concat([PREFACE, SETTINGS, ...earlyResets(EARLY_RESETS)])));
  });

  /** A session above the limit, with a running call. */
  async function limitedSession() {
    const running: HttpResponse[] = [];
    await open({ ...LOW, http2StreamIdleMs: 200 }, undefined, (response) => running.push(response));
    const answerNext = async () => {
      while (running.length === 0) await new Promise((resolve) => setImmediate(resolve));
      send(running.pop() as HttpResponse, 200, "text/plain", "served");
    };
    const [idle, socket] = [await dial(), await dial()];
    idle.write(SESSION);
    await Promise.all([untilServed(idle), answerNext()]);
    const received: Buffer[] = [];
    socket.on("data", (piece: Buffer) => received.push(piece));
    socket.write(Buffer.concat([SESSION, ...earlyResets(EARLY_RESETS, 3)]));
    while (!goawayCodes(Buffer.concat(received)).includes(ENHANCE_YOUR_CALM)) await once(socket, "data");
    return { idle, socket, answerNext, text: () => String(Buffer.concat(received)) };
  }

  test("a session is closed after its running calls, and an idle one goes on", async () => {
    const { idle, socket, answerNext, text } = await limitedSession();
    await Promise.all([once(socket, "close"), answerNext()]);
    expect(text()).toContain("served");
    idle.write(Buffer.concat(requests(1, 3)));
    await Promise.all([untilServed(idle), answerNext()]);
  });

  test("a limited session is closed although its caller sends many more requests", async () => {
    const { socket, answerNext } = await limitedSession();
    socket.write(Buffer.concat(earlyResets(5_000, 2 * EARLY_RESETS + 3)));
    await Promise.all([once(socket, "close"), answerNext()]);
  });

  test("a session is closed although connections per address are not limited, and new ones start at once", async () => {
    await open({ ...LOW, connectionsPerAddress: 0 });
    await untilClosed(await resetEarly());
    await untilServed(await dialWith(SESSION));
  });

  test("a session that waits too long is closed", async () => {
    await open({ http2EarlyResetBurst: 0, http2EarlyResetsPerSecond: 0.001, http2FirstCallMs: 50 });
    await resetEarly();
    await untilClosed(await dialWith(SESSION));
  }, 5_000);

  test("they start when the allowance has grown enough", async () => {
    await open({ http2EarlyResetBurst: EARLY_RESETS / 2, http2EarlyResetsPerSecond: 1_000 });
    await resetEarly();
    await untilServed(await dialWith(SESSION));
  }, 5_000);

  test("they start at once if fewer requests than allowed were reset", async () => {
    await open({ http2EarlyResetBurst: EARLY_RESETS + 1, http2EarlyResetsPerSecond: 0.001 });
    await resetEarly();
    await untilServed(await dialWith(SESSION));
    // Shorter than the wait.
  }, 5_000);
});

test("a session may cancel any number of running calls, and its other calls go on", async () => {
  const responses: HttpResponse[] = [];
  await open({}, undefined, (response) => responses.push(response));
  const session = connectHttp2(url);
  const start = async () => {
    const stream = session.request({ ":path": "/" });
    const isAnswered = once(stream, "response");
    while (responses.length === 0) await new Promise((resolve) => setImmediate(resolve));
    return { stream, isAnswered, response: responses.pop() as HttpResponse };
  };
  const lasting = await start();
  for (let i = 0; i < 1_500; i++) (await start()).stream.close(constants.NGHTTP2_CANCEL);
  send(lasting.response, 200, "text/plain", "served");
  await lasting.isAnswered;
  const next = await start();
  send(next.response, 200, "text/plain", "served");
  await next.isAnswered;
  session.destroy();
});

test("the maximum number of streams of a session is served if all arrive in one packet", async () => {
  await open();
  const socket = await dial();
  let text = "";
  socket.write(Buffer.concat([PREFACE, SETTINGS, ...requests(defaultLimits.http2ConcurrentStreams)]));
  while (text.split("served").length <= defaultLimits.http2ConcurrentStreams) text += String((await once(socket, "data"))[0]);
});

test("a session without a first call is closed, even if it sends pings", async () => {
  await open({ http2FirstCallMs: 200 });
  const socket = await dial();
  socket.write(Buffer.concat([PREFACE, SETTINGS]));
  const pings = setInterval(() => socket.write(frame(6, 0, 0, Buffer.alloc(8))), 20);
  expect(goawayCodes(await untilClosed(socket))).toContain(NO_ERROR);
  clearInterval(pings);
});

test("an idle session is closed, even if the caller keeps its side of the connection open", async () => {
  await open({ http2FirstCallMs: 100, http2SessionIdleMs: 100, lingerMs: 100 });
  const socket = connectTcp({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
  sockets.push(socket);
  socket.write(Buffer.concat([PREFACE, SETTINGS, ...requests(1)]));
  socket.resume();
  await once(socket, "end");
  while (listener.connections > 0) await new Promise((resolve) => setImmediate(resolve));
});

test("pipelined requests are served up to a limit, then the connection is closed", async () => {
  await open();
  const request = "GET / HTTP/1.1\r\nhost: vx\r\n\r\n";
  const socket = await dial();
  let text = "";
  socket.write(request.repeat(20));
  while (text.split("served").length <= 20) text += String((await once(socket, "data"))[0]);
  const greedy = await dial();
  const received = untilClosed(greedy);
  greedy.write(request.repeat(2_000));
  expect(String(await received).split("served").length).toBeLessThan(100);
});

test.each([
  ["before the listener closes", "host: vx\r\n", () => listener.prepareClose()],
  ["behind a request without Host", "", () => undefined],
])("requests pipelined %s, behind the last response, are not run", async (_when, host, prepare) => {
  await open();
  prepare();
  const socket = await dial();
  const received = untilClosed(socket);
  socket.write(`GET / HTTP/1.1\r\n${host}\r\n${"GET / HTTP/1.1\r\nhost: vx\r\n\r\n".repeat(3)}`);
  expect(String(await received)).toMatch(/^HTTP\/1.1 200 .*connection: close.*served$/s);
  expect(handled).toBe(1);
});

test("input beyond the units of a turn waits for the next turns, in order", async () => {
  const { turnOf, order } = await processInTurns(8, 40);
  expect(order).toEqual(Array.from({ length: 40 }, (_, i) => i));
  const perTurn = Map.groupBy(turnOf, (turn) => turn);
  expect(perTurn.size).toBeGreaterThan(4);
  for (const inputs of perTurn.values()) expect(inputs.length).toBeLessThanOrEqual(8);
});

test("input within the units of a turn is processed at once", async () => {
  const { turnOf } = await processInTurns(64, 40);
  expect(new Set(turnOf).size).toBe(1);
});

test("addresses take turns: many inputs of one delay that of another no longer than one does", async () => {
  const addressOf = (input: number) => (input < 39 ? "many" : "other");
  const { order } = await processInTurns(8, 40, addressOf);
  expect(order.indexOf(39)).toBeLessThanOrEqual(8 + 1);
});

/** All inputs arrive in the same turn. */
async function processInTurns(unitsPerTurn: number, inputs: number, addressOf = (_input: number) => "one") {
  await open();
  const turns = new ReadingTurns(unitsPerTurn);
  const turnOf: number[] = [];
  const order: number[] = [];
  let turn = 0;
  let counter = setImmediate(function next() {
    turn++;
    counter = setImmediate(next);
  });
  const isDone = Promise.withResolvers<void>();
  for (let i = 0; i < inputs; i++) {
    turns.process(addressOf(i), () => {
      turnOf[i] = turn;
      order.push(i);
      if (order.length === inputs) isDone.resolve();
    });
  }
  await isDone.promise;
  clearImmediate(counter);
  return { turnOf, order };
}
