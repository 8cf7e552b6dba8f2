// GetMe over gRPC with a key look-up and admission in PostgreSQL per call, compared with a server that does
// neither. The client is the one in bench/clients, because one on Node needs more CPU time than the server.

import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { GET_ME, grpcArm } from "../grpc-load.ts";
import type { Load } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline } from "../program.ts";
import { startServer } from "../server.ts";

const KEYS = 16;
const CALLERS = 64;
const TARGET = { ...GET_ME, callers: CALLERS, connections: 8 };
const SECONDS = 2;

export const grpcMe: Part<{ grpc: ServerLoad }, { plain: Load }> = {
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const secrets = (await createPayers(server, KEYS)).map(({ secret }) => secret);
    return { grpc: withCpuTime(server.pid, await grpcArm({ ...TARGET, url: server.url, secrets }, SECONDS)) };
  },
  openBaselines: async (cleanup) => ({
    plain: await grpcArm({ ...TARGET, url: await startBaseline(cleanup, "baseline-server") }, SECONDS),
  }),
  figures: [
    { name: `gRPC GetMe, ${CALLERS} callers`, unit: "/s", value: (r) => r.grpc.perSecond },
    { name: "  p50", unit: "ms", value: (r) => r.grpc.p50Ms },
    { name: "  p99", unit: "ms", value: (r) => r.grpc.p99Ms },
    cpuFigure("grpc"),
    { name: "connect-node without keys", unit: "/s", value: (r) => r.plain.perSecond },
    {
      name: "gRPC / connect-node without keys",
      unit: "×",
      min: 3.5,
      goal: 5,
      value: (r) => r.grpc.perSecond / r.plain.perSecond,
    },
  ],
};
