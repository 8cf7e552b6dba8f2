// Metered chat completions through the whole server, compared with @portkey-ai/gateway, which has no
// accounts. Both use the same kind of model server and their default log settings. Not streamed, because the
// peer returns 500 for streams on this Node ("immutable" headers). Two more arms show where the time goes: the
// server with free holds and settlements, and a bare proxy.
import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { httpArm, postRequest } from "../http-load.ts";
import type { Load } from "../load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { PORTKEY, startPortkey } from "../peers/portkey.ts";
import { startBaseline } from "../program.ts";
import { createRemoteModels } from "../remote-models.ts";
import { FREE_BILLING, startServer } from "../server.ts";

const ACCOUNTS = 1_000;
const SECONDS = 3;
const PATH = "/v1/chat/completions";

function arm(url: string, connections: number, requests: readonly string[]) {
  return httpArm({ url, requests, connections, seconds: SECONDS });
}

function bodyFor(model: string): string {
  return JSON.stringify({ model, messages: [{ role: "user", content: "Say hello." }], max_tokens: 100 });
}

type GatewayPart = Part<{ metered: ServerLoad; free: ServerLoad }, { peer: Load; bare: Load }>;

/** More connections fill larger batches. */
export const gateway = (connections: number, limit: { min: number; goal: number }): GatewayPart => ({
  rounds: 5,
  // The peer needs some seconds until its code is compiled.
  warmUpRounds: 3,
  open: async (checkout, cleanup) => {
    const upstream = await startBaseline(cleanup, "upstream-server");
    const env = { VX_MODELS: createRemoteModels(cleanup, { bench: upstream }) };
    const openArm = async (preload: readonly string[]) => {
      const server = await startServer(checkout, cleanup, { env, preload, hasDefaultLog: true });
      const payers = await createPayers(server, ACCOUNTS);
      const requests = payers.map(({ secret }) => postRequest(PATH, bodyFor("bench"), secret));
      return withCpuTime(server.pid, arm(server.url, connections, requests));
    };
    return { metered: await openArm([]), free: await openArm([FREE_BILLING]) };
  },
  openBaselines: async (cleanup) => {
    const upstream = await startBaseline(cleanup, "upstream-server");
    const bare = await startBaseline(cleanup, "bare-proxy", { env: { UPSTREAM: upstream } });
    const { url, secret, headers } = await startPortkey(cleanup, upstream);
    return {
      peer: arm(url, connections, [postRequest(PATH, bodyFor("m"), secret, headers)]),
      bare: arm(bare, connections, [postRequest(PATH, bodyFor("m"), "none")]),
    };
  },
  figures: [
    { name: `chat completions, ${connections} connections, metered`, unit: "/s", value: (r) => r.metered.perSecond },
    { name: "  p99", unit: "ms", value: (r) => r.metered.p99Ms },
    cpuFigure("metered"),
    { name: `${PORTKEY}, not metered`, unit: "/s", value: (r) => r.peer.perSecond },
    { name: "  p99", unit: "ms", value: (r) => r.peer.p99Ms },
    { name: "metered / not metered", unit: "×", ...limit, value: (r) => r.metered.perSecond / r.peer.perSecond },
    { name: "  without hold and settle / not metered", unit: "×", value: (r) => r.free.perSecond / r.peer.perSecond },
    { name: "  a proxy that does nothing else / not metered", unit: "×", value: (r) => r.bare.perSecond / r.peer.perSecond },
    { name: "p99 metered / p99 not metered", unit: "×", max: 1.5, value: (r) => r.metered.p99Ms / r.peer.p99Ms },
  ],
});
