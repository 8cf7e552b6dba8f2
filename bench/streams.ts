// Many concurrent streams: checks that none is lost, and measures the memory of each.
import { connect } from "node:net";
import { postRequest } from "./http-load.ts";
import { createPayers } from "./payers.ts";
import { type Server, startServer } from "./server.ts";
import { type BenchDatabase, type Figure, residentMib } from "./support.ts";

const STREAMS = 1_000;
const PIECES = 200;
/** The sandbox sends four tokens per piece. */
const TOKENS = 4 * PIECES;
const DELAY_MS = 50;
const WARM_UP_STREAMS = 64;
const WARM_UP_ROUNDS = 5;
const SAMPLE_MS = 100;

export async function streams(database: BenchDatabase): Promise<Figure[]> {
  const payers = await createPayers(database.owner, STREAMS);
  const server = await startServer(database);
  const requests = payers.map(({ secret }) => postRequest("/v1/generate", body(DELAY_MS), secret));
  const quick = payers.map(({ secret }) => postRequest("/v1/generate", body(0), secret));
  // Warm up, so that the growth of the young generation is not counted as memory of the streams.
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    await Promise.all(quick.slice(0, WARM_UP_STREAMS).map((request) => read(server.url, request)));
  }
  const before = residentMib(server.pid);
  const watched = watch(server);
  const startedAt = performance.now();
  const ends = await Promise.all(requests.map((request) => read(server.url, request)));
  const seconds = (performance.now() - startedAt) / 1000;
  const { residentMib: most, queueDepth } = await watched.stop();
  await server.stop();
  const whole = ends.filter(({ pieces, isWhole }) => isWhole && pieces === PIECES).length;
  return [
    {
      name: `${STREAMS} streams of ${PIECES} pieces at once, lost`,
      value: STREAMS - whole,
      unit: "",
      atMost: 0,
    },
    { name: "  pieces", value: (STREAMS * PIECES) / seconds, unit: "/s" },
    { name: "  resident memory before", value: before, unit: "MiB" },
    { name: "  resident memory at most", value: most, unit: "MiB" },
    { name: "  memory of a stream", value: ((most - before) * 1024) / STREAMS, unit: "KiB", atMost: 100 },
    { name: "  longest queue of holds and settlements", value: queueDepth, unit: "", atMost: STREAMS },
  ];
}

function body(delayMs: number): string {
  const content = `[[tokens=${TOKENS} delay_ms=${delayMs}]] Count.`;
  return JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content }], stream: true });
}

type End = { readonly pieces: number; readonly isWhole: boolean };

/** Reads a stream to its end. Returns the number of pieces and whether it ended with its charge. */
function read(url: string, request: string): Promise<End> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let rest = "";
    let pieces = 0;
    let isCharged = false;
    const finish = (isWhole: boolean) => {
      socket.destroy();
      resolve({ pieces, isWhole: isWhole && isCharged });
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

/** Records the maximum memory and queue depth while it watches. */
function watch(server: Server) {
  let most = 0;
  let queueDepth = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      most = Math.max(most, residentMib(server.pid));
      queueDepth = Math.max(queueDepth, await server.metric("vx_billing_queue_depth"));
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await watching;
      return { residentMib: most, queueDepth };
    },
  };
}
