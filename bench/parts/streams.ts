// Many concurrent streams: fails if one is lost, and measures the memory of each.
import { connect } from "node:net";
import type { Checkout } from "../checkout.ts";
import { postRequest } from "../http-load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { residentMib, watchMemory } from "../program.ts";
import { startServer, temporaryFolder } from "../server.ts";

const STREAMS = 1_000;
const PIECES = 200;
/** The sandbox sends four tokens per piece. */
const TOKENS = 4 * PIECES;
const DELAY_MS = 50;
const WARM_UP_STREAMS = 64;
const WARM_UP_ROUNDS = 5;

type Streams = { perSecond: number; beforeMib: number; maxMib: number };

export const streams: Part<{ streams: Streams }> = {
  rounds: 3,
  warmUpRounds: 0,
  open: async (checkout, cleanup) => {
    const dataDir = temporaryFolder(cleanup);
    return { streams: () => runStreams(checkout, dataDir) };
  },
  figures: [
    { name: `${STREAMS} streams of ${PIECES} pieces at once, pieces`, unit: "/s", value: (r) => r.streams.perSecond },
    { name: "  resident memory before", unit: "MiB", value: (r) => r.streams.beforeMib },
    { name: "  resident memory at most", unit: "MiB", value: (r) => r.streams.maxMib },
    { name: "  memory of a stream", unit: "KiB", value: (r) => ((r.streams.maxMib - r.streams.beforeMib) * 1024) / STREAMS },
    { name: "  resident memory at most / before", unit: "×", max: 3, value: (r) => r.streams.maxMib / r.streams.beforeMib },
  ],
};

/** A new server for each round, because the memory that streams took is not given back at once. */
async function runStreams(checkout: Checkout, dataDir: string): Promise<Streams> {
  await using started = new AsyncDisposableStack();
  const server = await startServer(checkout, started, { dataDir });
  const payers = await createPayers(server, STREAMS);
  const requests = (delayMs: number) => payers.map(({ secret }) => postRequest("/v1/generate", body(delayMs), secret));
  // Warm up, so that the growth of the young generation is not counted as memory of the streams.
  const quick = requests(0).slice(0, WARM_UP_STREAMS);
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    await Promise.all(quick.map((request) => readStream(server.url, request)));
  }
  const beforeMib = residentMib(server.pid);
  const memory = watchMemory(server.pid);
  const startedAt = performance.now();
  const results = await Promise.all(requests(DELAY_MS).map((request) => readStream(server.url, request)));
  const seconds = (performance.now() - startedAt) / 1000;
  const maxMib = memory.stop();
  const lost = results.filter(({ pieces, isComplete }) => !isComplete || pieces !== PIECES).length;
  if (lost > 0) throw new Error(`${lost} of ${STREAMS} streams were lost`);
  return { perSecond: (STREAMS * PIECES) / seconds, beforeMib, maxMib };
}

function body(delayMs: number): string {
  const content = `[[tokens=${TOKENS} delay_ms=${delayMs}]] Count.`;
  return JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content }], stream: true });
}

type StreamResult = { readonly pieces: number; readonly isComplete: boolean };

/** Reads a stream to its end. Returns the number of pieces and whether it ended with its charge. */
function readStream(url: string, request: string): Promise<StreamResult> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let rest = "";
    let pieces = 0;
    let isCharged = false;
    const finish = (isComplete: boolean) => {
      socket.destroy();
      resolve({ pieces, isComplete: isComplete && isCharged });
    };
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith('data: {"delta"')) pieces++;
        else if (line.startsWith('data: {"done"')) isCharged = true;
        else if (line.startsWith("data: [DONE]")) finish(true);
      }
    });
    socket.on("error", () => finish(false)).on("close", () => finish(false));
    socket.write(request);
  });
}
