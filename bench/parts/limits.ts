// What limits cost POST /v1/generate on the sandbox. The arms of a part use one server, in turn, so that their CPU time per call can
// be compared while other programs run.

import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { type Server, startServer } from "../server.ts";

const KEYS = 1_000;
const USERS = 10_000;
const CONNECTIONS = 64;
const SECONDS = 2;

/** No bench reaches them. */
const AMOUNT = "1000000000000";
const FIVE_LIMITS = [
  { metric: "concurrent", window: "" },
  { metric: "tokens", window: "minute" },
  { metric: "generations", window: "day" },
  { metric: "cost", window: "month" },
  { metric: "cost", window: "total" },
];

/** Says something only with --against a checkout that has no limits, or other limits. */
export const limitsNone: Part<{ none: ServerLoad }> = {
  rounds: 15,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    return { none: await openKeys(server, []) };
  },
  figures: [{ ...cpuFigure("none"), name: `POST /v1/generate, ${KEYS} keys without limits, CPU time per call` }],
};

export const limitsFive: Part<{ five: ServerLoad; none: ServerLoad }> = {
  rounds: 15,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    return { five: await openKeys(server, FIVE_LIMITS), none: await openKeys(server, []) };
  },
  figures: [
    { name: `POST /v1/generate, five limits on each of ${KEYS} keys`, unit: "/s", value: (r) => r.five.perSecond },
    cpuFigure("five"),
    { name: "without limits", unit: "/s", value: (r) => r.none.perSecond },
    cpuFigure("none"),
    { name: "calls per CPU time, five limits / none", unit: "×", min: 0.93, value: (r) => r.none.cpuMicros / r.five.cpuMicros },
  ],
};

export const limitsUsers: Part<{ users: ServerLoad; none: ServerLoad }> = {
  rounds: 15,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const server = await startServer(checkout, cleanup);
    return {
      users: await openUsers(server, [{ metric: "generations", window: "day", per: "user" }]),
      none: await openUsers(server, []),
    };
  },
  figures: [
    { name: `POST /v1/generate, one account, ${USERS} counters`, unit: "/s", value: (r) => r.users.perSecond },
    cpuFigure("users"),
    { name: "the same users without limits", unit: "/s", value: (r) => r.none.perSecond },
    cpuFigure("none"),
    {
      name: `CPU time per call, ${USERS} counters / none`,
      unit: "×",
      max: 1.1,
      value: (r) => r.users.cpuMicros / r.none.cpuMicros,
    },
  ],
};

type Limits = readonly { readonly metric: string; readonly window: string; readonly per?: string }[];

/** Calls of keys that each have the limits. */
async function openKeys(server: Server, limits: Limits): Promise<() => Promise<ServerLoad>> {
  const payers = await createPayers(server, KEYS);
  for (const limit of limits) {
    const set = ({ keyId }: { keyId: string }) => server.operate("SetLimit", { keyId, limit: { ...limit, amount: AMOUNT } });
    for (const payer of payers) await set(payer);
  }
  const requests = payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
  return arm(server, requests);
}

/** Calls of an account with the limits, by end users who have called before. */
async function openUsers(server: Server, limits: Limits): Promise<() => Promise<ServerLoad>> {
  const [payer] = await createPayers(server, 1);
  for (const limit of limits) {
    const { accountId } = payer ?? {};
    await server.operate("SetLimit", { accountId, limit: { ...limit, amount: AMOUNT } });
  }
  const body = JSON.parse(generateBody()) as object;
  const requests = Array.from({ length: USERS }, (_, user) =>
    postRequest("/v1/generate", JSON.stringify({ ...body, user: `user-${user}` }), payer?.secret ?? ""),
  );
  const measure = arm(server, requests);
  for (let calls = 0; calls < USERS; ) calls += (await measure()).perSecond * SECONDS;
  return measure;
}

function arm({ url, pid }: Server, requests: readonly string[]): () => Promise<ServerLoad> {
  return withCpuTime(pid, httpArm({ url, requests, connections: CONNECTIONS, seconds: SECONDS }));
}
