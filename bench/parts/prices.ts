// What credit that expires, tiers, price lists and discounts cost POST /v1/generate on the sandbox. Both arms use one server, in turn, so
// that their CPU time per call can be compared while other programs run.

import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Part } from "../part.ts";
import { createPayers, type Payer } from "../payers.ts";
import { type Server, startServer } from "../server.ts";

const ACCOUNTS = 1_000;
const CONNECTIONS = 64;
const SECONDS = 2;

/** No bench uses up a grant, and none expires while it runs. */
const GRANT_MICROS = "1000000000000";
const GRANTS = 2;
const DAY_MS = 86_400_000;
/** With the second tier, the prices of a call are those above its input. */
const PRICES = {
  input: "3000000",
  output: "15000000",
  tiers: [
    { aboveInputTokens: 1, input: "4000000", output: "20000000" },
    { aboveInputTokens: 100_000, input: "6000000", output: "30000000" },
  ],
};

/** Says something only with --against a checkout that has no prices of accounts. */
export const pricesNone: Part<{ none: ServerLoad }> = {
  rounds: 15,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    return { none: arm(server, await createPayers(server, ACCOUNTS)) };
  },
  figures: [{ ...cpuFigure("none"), name: "POST /v1/generate, public prices, CPU time per call" }],
};

export const pricesAll: Part<{ all: ServerLoad; none: ServerLoad }> = {
  rounds: 15,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    const payers = await createPayers(server, 2 * ACCOUNTS);
    const [all, none] = [payers.slice(ACCOUNTS), payers.slice(0, ACCOUNTS)];
    for (const [index, payer] of all.entries()) await usePrices(server, payer, index);
    return { all: arm(server, all), none: arm(server, none) };
  },
  figures: [
    { name: "POST /v1/generate, grants, tiers, price list, discount", unit: "/s", value: (r) => r.all.perSecond },
    cpuFigure("all"),
    { name: "public prices, no grants", unit: "/s", value: (r) => r.none.perSecond },
    cpuFigure("none"),
    { name: "calls per CPU time, all / none", unit: "×", min: 0.95, value: (r) => r.none.cpuMicros / r.all.cpuMicros },
  ],
};

/** The account gets credit that expires, and prices of its own with tiers or a discount: an account cannot have both for a model. */
async function usePrices({ operate }: Server, { accountId }: Payer, index: number): Promise<void> {
  const change = index % 2 === 0 ? { model: "vx-sandbox-small", prices: PRICES } : { discountBps: 500 };
  await operate("SetAccountPrices", { accountId, ...change, reason: "bench" });
  for (let n = 1; n <= GRANTS; n++) {
    await operate("CreditAccount", {
      accountId,
      amountMicros: GRANT_MICROS,
      reason: "bench",
      idempotencyKey: `${accountId}-${n}`,
      expiresAt: new Date(Date.now() + n * DAY_MS).toISOString(),
    });
  }
}

function arm({ url, pid }: Server, payers: readonly Payer[]): () => Promise<ServerLoad> {
  const requests = payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
  return withCpuTime(pid, httpArm({ url, requests, connections: CONNECTIONS, seconds: SECONDS }));
}
