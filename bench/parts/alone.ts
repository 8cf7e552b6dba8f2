// The cost of metering for a single caller: the server compared with one whose holds and settlements cost
// nothing.

import { type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { FREE_BILLING, startServer } from "../server.ts";

const ACCOUNTS = 1_000;
const SECONDS = 2;

export const alone: Part<{ metered: ServerLoad; free: ServerLoad }> = {
  rounds: 7,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const openArm = async (preload: readonly string[]) => {
      const server = await startServer(checkout, cleanup, { preload });
      const payers = await createPayers(server, ACCOUNTS);
      const requests = payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
      return withCpuTime(server.pid, httpArm({ url: server.url, requests, connections: 1, seconds: SECONDS }));
    };
    return { metered: await openArm([]), free: await openArm([FREE_BILLING]) };
  },
  figures: [
    { name: "POST /v1/generate, one caller, p50", unit: "ms", value: (r) => r.metered.p50Ms },
    { name: "the same without hold and settle", unit: "ms", value: (r) => r.free.p50Ms },
    { name: "metering adds", unit: "ms", max: 2, value: (r) => r.metered.p50Ms - r.free.p50Ms },
    { name: "p50 with / without", unit: "×", value: (r) => r.metered.p50Ms / r.free.p50Ms },
  ],
};
