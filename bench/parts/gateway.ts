// Metered chat completions through the whole server, compared with @portkey-ai/gateway, which has no
// accounts. Both use the same kind of model server. Not streamed, because the peer returns 500 for streams on
// this Node ("immutable" headers). Two more arms show where the time goes: the server with free holds and
// settlements, and a bare proxy.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { httpArm, postRequest } from "../http-load.ts";
import type { Load } from "../load.ts";
import { type Part, Unavailable } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startBaseline, startProgram } from "../program.ts";
import { createRemoteModel } from "../remote-model.ts";
import { FREE_BILLING, freePort, startServer, temporaryFolder } from "../server.ts";

const PEER = "@portkey-ai/gateway@1.15.2";
const ACCOUNTS = 1_000;
const CONNECTIONS = 64;
const SECONDS = 3;
const PATH = "/v1/chat/completions";

function arm(url: string, requests: readonly string[]) {
  return httpArm({ url, requests, connections: CONNECTIONS, seconds: SECONDS });
}

function bodyFor(model: string): string {
  return JSON.stringify({ model, messages: [{ role: "user", content: "Say hello." }], max_tokens: 100 });
}

export const gateway: Part<{ metered: ServerLoad; free: ServerLoad }, { peer: Load; bare: Load }> = {
  rounds: 5,
  // The peer needs some seconds until its code is compiled.
  warmUpRounds: 3,
  open: async (checkout, cleanup) => {
    const env = { VX_MODELS: await createRemoteModel(cleanup) };
    const openArm = async (preload: readonly string[]) => {
      const server = await startServer(checkout, cleanup, { env, preload });
      const payers = await createPayers(server, ACCOUNTS);
      const requests = payers.map(({ secret }) => postRequest(PATH, bodyFor("bench"), secret));
      return withCpuTime(server.pid, arm(server.url, requests));
    };
    return { metered: await openArm([]), free: await openArm([FREE_BILLING]) };
  },
  openBaselines: async (cleanup) => {
    const upstream = await startBaseline(cleanup, "upstream-server");
    const bare = await startBaseline(cleanup, "bare-proxy", { env: { UPSTREAM: upstream } });
    const headers = `x-portkey-provider: openai\r\nx-portkey-custom-host: ${upstream}/v1\r\n`;
    return {
      peer: arm(await startPeer(cleanup), [postRequest(PATH, bodyFor("m"), "none", headers)]),
      bare: arm(bare, [postRequest(PATH, bodyFor("m"), "none")]),
    };
  },
  figures: [
    {
      name: `chat completions, ${CONNECTIONS} connections, metered`,
      unit: "/s",
      value: (r) => r.metered.perSecond,
    },
    { name: "  p99", unit: "ms", value: (r) => r.metered.p99Ms },
    { name: `${PEER}, not metered`, unit: "/s", value: (r) => r.peer.perSecond },
    { name: "  p99", unit: "ms", value: (r) => r.peer.p99Ms },
    {
      name: "metered / not metered",
      unit: "×",
      min: 0.8,
      value: (r) => r.metered.perSecond / r.peer.perSecond,
    },
    {
      name: "  without hold and settle / not metered",
      unit: "×",
      value: (r) => r.free.perSecond / r.peer.perSecond,
    },
    {
      name: "  a proxy that does nothing else / not metered",
      unit: "×",
      value: (r) => r.bare.perSecond / r.peer.perSecond,
    },
    {
      name: "p99 metered / p99 not metered",
      unit: "×",
      max: 1.5,
      value: (r) => r.metered.p99Ms / r.peer.p99Ms,
    },
  ],
};

async function startPeer(cleanup: AsyncDisposableStack): Promise<string> {
  const folder = temporaryFolder(cleanup);
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
  try {
    await promisify(execFile)("npm", ["install", ...options, "--prefix", folder, PEER]);
  } catch (error) {
    throw new Unavailable(`${PEER} cannot be installed: ${(error as Error).message}`);
  }
  const port = await freePort();
  const peer = startProgram(
    [`${folder}/node_modules/@portkey-ai/gateway/build/start-server.js`, `--port=${port}`, "--headless"],
    { env: { NODE_ENV: "production" } },
  );
  cleanup.defer(peer.stop);
  await peer.next(/Ready for connections/);
  return `http://127.0.0.1:${port}`;
}
