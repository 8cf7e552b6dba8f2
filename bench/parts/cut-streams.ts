// Callers of the same address while 1,900 streams of one key are cut at once.
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { Checkout } from "../checkout.ts";
import { getRequest } from "../http-load.ts";
import type { Figure, Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startProgram } from "../program.ts";
import { type Server, startServer, temporaryFolder } from "../server.ts";

const STREAMS = 1_900;
const BEFORE_MS = 500;
/** Longer than the server takes to end the streams. */
const AFTER_MS = 6_000;
const MAX_WAIT_MS = 100;

type Waits = { readyMs: number; meMs: number; newConnectionMs: number };
type Versions = { http1: Waits; http2: Waits };

export const cutStreams: Part<Versions> = {
  rounds: 3,
  warmUpRounds: 0,
  open: async (checkout, cleanup) => {
    const dataDir = temporaryFolder(cleanup);
    return { http1: () => cut(checkout, dataDir, "http1"), http2: () => cut(checkout, dataDir, "http2") };
  },
  figures: (["http1", "http2"] as const).flatMap((version) => figuresOf(version)),
};

function figuresOf(version: keyof Versions): Figure<Versions>[] {
  const figure = (name: string, value: (waits: Waits) => number): Figure<Versions> => ({
    name,
    unit: "ms",
    max: MAX_WAIT_MS,
    value: (round) => value(round[version]),
  });
  return [
    figure(`${STREAMS} streams over ${version} cut, longest /readyz`, ({ readyMs }) => readyMs),
    figure("  longest GET /v1/me", ({ meMs }) => meMs),
    figure("  the same on new connections", ({ newConnectionMs }) => newConnectionMs),
  ];
}

async function cut(checkout: Checkout, dataDir: string, version: keyof Versions): Promise<Waits> {
  await using started = new AsyncDisposableStack();
  const server = await startServer(checkout, started, { dataDir });
  const [own, other] = await createPayers(server, 2);
  if (!own || !other) throw new Error("there are no payers");
  const program = join(import.meta.dirname, "..", "programs", "open-streams.ts");
  const caller = startProgram([program, server.url, own.secret, String(STREAMS), version]);
  await caller.next(/all streams are open/);
  await setTimeout(BEFORE_MS);
  const me = getRequest("/v1/me", other.secret);
  const waits = [
    longestWaitMs(server, "GET /readyz HTTP/1.1\r\nhost: vx\r\n\r\n", true),
    longestWaitMs(server, me, true),
    longestWaitMs(server, me, false),
  ];
  await setTimeout(BEFORE_MS);
  process.kill(caller.pid, "SIGKILL");
  const [readyMs = Number.NaN, meMs = Number.NaN, newConnectionMs = Number.NaN] = await Promise.all(waits);
  return { readyMs, meMs, newConnectionMs };
}

/** Sends one request after the other. */
async function longestWaitMs({ url }: Server, request: string, keepsConnection: boolean): Promise<number> {
  const { hostname, port } = new URL(url);
  const dial = () => connect({ host: hostname, port: Number(port), noDelay: true });
  const endMs = performance.now() + BEFORE_MS + AFTER_MS;
  let longest = 0;
  let socket = dial();
  for (;;) {
    const startMs = performance.now();
    if (startMs > endMs) break;
    await answer(socket, request);
    longest = Math.max(longest, performance.now() - startMs);
    if (!keepsConnection) {
      socket.destroy();
      socket = dial();
    }
    await setTimeout(5);
  }
  socket.destroy();
  return longest;
}

function answer(socket: Socket, request: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("data", (data: Buffer) => {
      socket.off("error", reject);
      if (String(data).startsWith("HTTP/1.1 200")) resolve();
      else reject(new Error(String(data)));
    });
    socket.write(request);
  });
}
