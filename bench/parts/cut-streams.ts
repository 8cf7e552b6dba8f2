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
/** Streams run meanwhile, so that the waits show what other load on the machine adds. */
const BEFORE_MS = 2_000;
/** Longer than the server takes to end the streams. */
const AFTER_MS = 6_000;
const MAX_WAIT_MS = 100;

type Waits = { beforeMs: number; readyMs: number; meMs: number; newConnectionMs: number };
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
  const figure = (name: string, key: keyof Waits, limit?: { max: number }): Figure<Versions> => ({
    name,
    unit: "ms",
    ...limit,
    value: (round) => round[version][key],
  });
  const max = MAX_WAIT_MS;
  return [
    figure(`${STREAMS} streams over ${version}, longest GET /v1/me`, "beforeMs"),
    figure("  while all are cut", "meMs", { max }),
    figure("  the same on new connections", "newConnectionMs", { max }),
    figure("  longest /readyz", "readyMs", { max }),
  ];
}

async function cut(checkout: Checkout, dataDir: string, version: keyof Versions): Promise<Waits> {
  await using started = new AsyncDisposableStack();
  const server = await startServer(checkout, started, { dataDir });
  const [own, other] = await createPayers(server, 2);
  if (!own || !other) throw new Error("there are no payers");
  const program = join(import.meta.dirname, "..", "programs", "open-streams.ts");
  const caller = startProgram([program, server.url, own.secret, String(STREAMS), version]);
  started.defer(caller.stop);
  await caller.next(/all streams are open/);
  const me = getRequest("/v1/me", other.secret);
  const beforeMs = await longestWaitMs(server, me, true, BEFORE_MS);
  const waits = [
    longestWaitMs(server, me, true, AFTER_MS),
    longestWaitMs(server, me, false, AFTER_MS),
    longestWaitMs(server, "GET /readyz HTTP/1.1\r\nhost: vx\r\n\r\n", true, AFTER_MS),
  ];
  process.kill(caller.pid, "SIGKILL");
  const [meMs = Number.NaN, newConnectionMs = Number.NaN, readyMs = Number.NaN] = await Promise.all(waits);
  return { beforeMs, readyMs, meMs, newConnectionMs };
}

/** Sends one request after the other. */
async function longestWaitMs({ url }: Server, request: string, keepsConnection: boolean, durationMs: number): Promise<number> {
  const { hostname, port } = new URL(url);
  const dial = () => connect({ host: hostname, port: Number(port), noDelay: true });
  const endMs = performance.now() + durationMs;
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
