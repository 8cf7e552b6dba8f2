// Many concurrent streams over gRPC, metered, compared with connect-node without keys. The pauses between pieces
// are so short that both servers are at their limit while all streams are open.

import { create, toBinary } from "@bufbuild/protobuf";
import { StreamGenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import type { Checkout } from "../checkout.ts";
import { callOnce, type GrpcTarget } from "../grpc-load.ts";
import { buildLoadProgram } from "../load-program.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { residentMib, startBaseline, watchMemory } from "../program.ts";
import { startServer, temporaryFolder } from "../server.ts";

const STREAMS = 1_000;
/** Each connection may have 128 streams. */
const CONNECTIONS = 10;
const PIECES = 200;
const DELAY_MS = 5;
const WARM_UP_STREAMS = 64;
const WARM_UP_ROUNDS = 5;

type Streams = { perSecond: number };
type Product = { streams: Streams & { beforeMib: number; maxMib: number } };

export const grpcStreams: Part<Product, { plain: Streams }> = {
  rounds: 3,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    await buildLoadProgram();
    const dataDir = temporaryFolder(cleanup);
    return { streams: () => measureServer(checkout, dataDir) };
  },
  openBaselines: async (cleanup) => {
    const args = [String(PIECES), String(DELAY_MS)];
    const url = await startBaseline(cleanup, "streaming-server", { args });
    return { plain: () => readStreams({ ...TARGET, url }) };
  },
  figures: [
    { name: `${STREAMS} gRPC streams of ${PIECES} pieces at once, pieces`, unit: "/s", value: (r) => r.streams.perSecond },
    { name: "connect-node without keys", unit: "/s", value: (r) => r.plain.perSecond },
    { name: "gRPC / connect-node without keys", unit: "×", min: 2, value: (r) => r.streams.perSecond / r.plain.perSecond },
    { name: "  resident memory before", unit: "MiB", value: (r) => r.streams.beforeMib },
    { name: "  resident memory at most", unit: "MiB", value: (r) => r.streams.maxMib },
    {
      name: "  memory of a stream",
      unit: "KiB",
      max: 56,
      value: (r) => ((r.streams.maxMib - r.streams.beforeMib) * 1024) / STREAMS,
    },
  ],
};

function messageFor(delayMs: number): Uint8Array {
  // The sandbox sends four tokens per piece.
  const content = `[[tokens=${4 * PIECES} delay_ms=${delayMs}]] Count.`;
  const request = { model: "vx-sandbox-small", messages: [{ role: "user", content }], maxTokens: 4 * PIECES };
  return toBinary(StreamGenerateRequestSchema, create(StreamGenerateRequestSchema, request));
}

const TARGET = {
  path: "/vx.v1.GenerateService/StreamGenerate",
  messages: [messageFor(DELAY_MS)],
  callers: STREAMS,
  connections: CONNECTIONS,
};

/** A new server for each round, because the memory that streams took is not given back at once. */
async function measureServer(checkout: Checkout, dataDir: string) {
  await using started = new AsyncDisposableStack();
  const server = await startServer(checkout, started, { dataDir });
  const secrets = (await createPayers(server, STREAMS)).map(({ secret }) => secret);
  const target = { ...TARGET, url: server.url, secrets };
  // Warm up, so that the growth of the young generation is not counted as memory of the streams.
  const quick = { ...target, messages: [messageFor(0)], callers: WARM_UP_STREAMS, connections: 1 };
  for (let round = 0; round < WARM_UP_ROUNDS; round++) await readStreams(quick);
  const beforeMib = residentMib(server.pid);
  const memory = watchMemory(server.pid);
  const streams = await readStreams(target);
  return { ...streams, beforeMib, maxMib: memory.stop() };
}

/** Fails if a stream fails or lacks a piece. The last message of a stream has its usage. */
async function readStreams(target: GrpcTarget): Promise<Streams> {
  const { messages, seconds } = await callOnce(target);
  const expected = target.callers * (PIECES + 1);
  if (messages !== expected) throw new Error(`${messages} of ${expected} messages arrived`);
  return { perSecond: (target.callers * PIECES) / seconds };
}
