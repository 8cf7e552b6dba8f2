// GET /v1/me with admission in PostgreSQL per call, compared with a bare node:http server and with the same
// RPC over Connect, on this server and on a plain connect-node server without keys.

import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { getRequest, httpArm, postRequest } from "../http-load.ts";
import type { Load } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline } from "../program.ts";
import { startServer } from "../server.ts";

const KEYS = 16;
const SECONDS = 2;
const CONNECT_PATH = "/vx.v1.MeService/GetMe";

function arm(url: string, connections: number, requests: readonly string[]) {
  return httpArm({ url, requests, connections, seconds: SECONDS });
}

type RestMePart = Part<{ rest: ServerLoad; connect: ServerLoad }, { bare: Load; plain: Load }>;
type Limits = { readonly rest: Limit; readonly connect: Limit };
type Limit = { readonly min: number; readonly goal?: number };

/** More connections fill larger batches. */
export const restMe = (connections: number, limits: Limits): RestMePart => ({
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const payers = await createPayers(server, KEYS);
    return {
      rest: withCpuTime(
        server.pid,
        arm(
          server.url,
          connections,
          payers.map(({ secret }) => getRequest("/v1/me", secret)),
        ),
      ),
      connect: withCpuTime(
        server.pid,
        arm(
          server.url,
          connections,
          payers.map(({ secret }) => postRequest(CONNECT_PATH, "{}", secret)),
        ),
      ),
    };
  },
  openBaselines: async (cleanup) => ({
    bare: arm(await startBaseline(cleanup, "bare-server"), connections, [getRequest("/v1/me", "none")]),
    plain: arm(await startBaseline(cleanup, "baseline-server", { args: ["http1"] }), connections, [
      postRequest(CONNECT_PATH, "{}", "none"),
    ]),
  }),
  figures: [
    { name: `GET /v1/me, ${connections} connections`, unit: "/s", value: (r) => r.rest.perSecond },
    { name: "  p50", unit: "ms", value: (r) => r.rest.p50Ms },
    { name: "  p99", unit: "ms", value: (r) => r.rest.p99Ms },
    cpuFigure("rest"),
    { name: "bare node:http, the same bytes", unit: "/s", value: (r) => r.bare.perSecond },
    { name: "REST / bare node:http", unit: "×", ...limits.rest, value: (r) => r.rest.perSecond / r.bare.perSecond },
    { name: "the same RPC as Connect JSON", unit: "/s", value: (r) => r.connect.perSecond },
    { name: "Connect JSON / REST", unit: "×", ...limits.connect, value: (r) => r.connect.perSecond / r.rest.perSecond },
    { name: "the same RPC, connect-node without keys", unit: "/s", value: (r) => r.plain.perSecond },
    { name: "REST / connect-node without keys", unit: "×", min: 1, value: (r) => r.rest.perSecond / r.plain.perSecond },
  ],
});
