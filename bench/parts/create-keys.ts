// POST /v1/keys: each call creates a key that expires, in a transaction of its own. The baseline is a JSON echo on node:http.
import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { httpArm, postRequest } from "../http-load.ts";
import type { Load } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline } from "../program.ts";
import { startServer } from "../server.ts";

const ACCOUNTS = 256;
const CONNECTIONS = 32;
const SECONDS = 2;
const PATH = "/v1/keys";
const BODY = JSON.stringify({ name: "bench", scopes: ["generate", "read"], expires_at: "2100-01-01T00:00:00Z" });

function arm(url: string, secrets: readonly string[]) {
  const requests = secrets.map((secret) => postRequest(PATH, BODY, secret));
  return httpArm({ url, requests, connections: CONNECTIONS, seconds: SECONDS });
}

export const createKeys: Part<{ keys: ServerLoad }, { echo: Load }> = {
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const payers = await createPayers(server, ACCOUNTS);
    const secrets = payers.map(({ secret }) => secret);
    return { keys: withCpuTime(server.pid, arm(server.url, secrets)) };
  },
  openBaselines: async (cleanup) => ({ echo: arm(await startBaseline(cleanup, "echo-server"), ["none"]) }),
  figures: [
    { name: `POST ${PATH}, ${CONNECTIONS} connections`, unit: "/s", value: (r) => r.keys.perSecond },
    { name: "  p50", unit: "ms", value: (r) => r.keys.p50Ms },
    { name: "  p99", unit: "ms", value: (r) => r.keys.p99Ms },
    cpuFigure("keys"),
    { name: "bare node:http JSON echo", unit: "/s", value: (r) => r.echo.perSecond },
    { name: "create keys / bare node:http", unit: "×", value: (r) => r.keys.perSecond / r.echo.perSecond },
  ],
};
