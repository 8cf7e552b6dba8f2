// Generate over gRPC on the sandbox, compared with POST /v1/generate: the same prompt, hold and settlement.

import { create, toBinary } from "@bufbuild/protobuf";
import { GenerateRequestSchema } from "../../gen/vx/v1/generate_pb.js";
import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { grpcArm } from "../grpc-load.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startServer } from "../server.ts";

const ACCOUNTS = 1_000;
const CALLERS = 64;
const SECONDS = 2;
const MESSAGE = toBinary(
  GenerateRequestSchema,
  create(GenerateRequestSchema, {
    model: "vx-sandbox-small",
    messages: [{ role: "user", content: "Say hello." }],
    maxTokens: 100,
  }),
);
const TARGET = { path: "/vx.v1.GenerateService/Generate", messages: [MESSAGE], callers: CALLERS, connections: 8 };

export const grpcGenerate: Part<{ grpc: ServerLoad; rest: ServerLoad }> = {
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const { url } = server;
    const secrets = (await createPayers(server, ACCOUNTS)).map(({ secret }) => secret);
    const requests = secrets.map((secret) => postRequest("/v1/generate", generateBody(), secret));
    return {
      grpc: withCpuTime(server.pid, await grpcArm({ ...TARGET, url, secrets }, SECONDS)),
      rest: withCpuTime(server.pid, httpArm({ url, requests, connections: CALLERS, seconds: SECONDS })),
    };
  },
  figures: [
    { name: `gRPC Generate, ${CALLERS} callers, ${ACCOUNTS} accounts`, unit: "/s", value: (r) => r.grpc.perSecond },
    { name: "  p50", unit: "ms", value: (r) => r.grpc.p50Ms },
    { name: "  p99", unit: "ms", value: (r) => r.grpc.p99Ms },
    cpuFigure("grpc"),
    { name: "POST /v1/generate", unit: "/s", value: (r) => r.rest.perSecond },
    { name: "gRPC / POST", unit: "×", min: 0.8, value: (r) => r.grpc.perSecond / r.rest.perSecond },
  ],
};
