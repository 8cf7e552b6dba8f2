// GetMe over gRPC with a key look-up and admission in PostgreSQL per call, compared with a server that does
// neither.

import { type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { grpcArm } from "../grpc-load.ts";
import type { Load } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline } from "../program.ts";
import { startServer } from "../server.ts";

const CALLERS = 64;
const TARGET = { callers: CALLERS, connections: 4, seconds: 2 };

export const grpcMe: Part<{ grpc: ServerLoad }, { plain: Load }> = {
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const [payer] = await createPayers(server, 1);
    const authorization = `Bearer ${payer?.secret}`;
    return { grpc: withCpuTime(server.pid, grpcArm({ ...TARGET, url: server.url, authorization })) };
  },
  openBaselines: async (cleanup) => ({
    plain: grpcArm({ ...TARGET, url: await startBaseline(cleanup, "baseline-server") }),
  }),
  figures: [
    { name: `gRPC GetMe, ${CALLERS} callers`, unit: "/s", value: (r) => r.grpc.perSecond },
    { name: "  p50", unit: "ms", value: (r) => r.grpc.p50Ms },
    { name: "  p99", unit: "ms", value: (r) => r.grpc.p99Ms },
    { name: "connect-node without keys", unit: "/s", value: (r) => r.plain.perSecond },
    {
      name: "gRPC / connect-node without keys",
      unit: "×",
      min: 0.6,
      value: (r) => r.grpc.perSecond / r.plain.perSecond,
    },
  ],
};
