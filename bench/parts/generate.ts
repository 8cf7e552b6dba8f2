// POST /v1/generate on the sandbox, with a durable hold and settlement per call, compared with a node:http
// JSON echo.

import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Load } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline } from "../program.ts";
import { startServer } from "../server.ts";

const ACCOUNTS = 1_000;
const SECONDS = 2;
const PATH = "/v1/generate";

function arm(url: string, connections: number, requests: readonly string[]) {
  return httpArm({ url, requests, connections, seconds: SECONDS });
}

type GeneratePart = Part<{ many: ServerLoad; hot: ServerLoad }, { echo: Load }>;

/** More connections fill larger batches. */
export const generate = (connections: number, limit: { min: number; goal: number }): GeneratePart => ({
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const payers = await createPayers(server, ACCOUNTS);
    const requests = payers.map(({ secret }) => postRequest(PATH, generateBody(), secret));
    return {
      many: withCpuTime(server.pid, arm(server.url, connections, requests)),
      hot: withCpuTime(server.pid, arm(server.url, connections, requests.slice(0, 1))),
    };
  },
  openBaselines: async (cleanup) => ({
    echo: arm(await startBaseline(cleanup, "echo-server"), connections, [postRequest(PATH, generateBody(), "none")]),
  }),
  figures: [
    { name: `POST ${PATH}, ${connections} connections, ${ACCOUNTS} accounts`, unit: "/s", value: (r) => r.many.perSecond },
    { name: "  p50", unit: "ms", value: (r) => r.many.p50Ms },
    { name: "  p99", unit: "ms", value: (r) => r.many.p99Ms },
    cpuFigure("many"),
    { name: "bare node:http JSON echo", unit: "/s", value: (r) => r.echo.perSecond },
    { name: "generate / bare node:http", unit: "×", ...limit, value: (r) => r.many.perSecond / r.echo.perSecond },
    { name: "one hot account", unit: "/s", value: (r) => r.hot.perSecond },
    { name: "  p99", unit: "ms", value: (r) => r.hot.p99Ms },
    { name: `one account / ${ACCOUNTS} accounts`, unit: "×", min: 0.8, value: (r) => r.hot.perSecond / r.many.perSecond },
  ],
});
