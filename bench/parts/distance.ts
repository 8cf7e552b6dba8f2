// Calls while PostgreSQL is a round trip away: on this machine, behind a proxy that delays what both sides send.
import { join } from "node:path";
import { loginIn } from "../../test/support/embedded.ts";
import type { Checkout } from "../checkout.ts";
import { type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { startDelay } from "../delay.ts";
import { generateBody, getRequest, httpArm, postRequest } from "../http-load.ts";
import type { Figure, Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { type Server, startServer } from "../server.ts";

const ROUND_TRIPS_MS = [0, 1, 5, 20] as const;
const ACCOUNTS = 1_000;
const CALLERS = 64;
const SECONDS = 3;

type Arm = `${"me" | "generate" | "one"}${(typeof ROUND_TRIPS_MS)[number]}`;

export const distance: Part<Record<Arm, ServerLoad>> = {
  rounds: 5,
  warmUpRounds: 1,
  open: async (checkout, cleanup) => {
    const owner = await startServer(checkout, cleanup);
    const payers = await createPayers(owner, ACCOUNTS);
    const arms: [Arm, () => Promise<ServerLoad>][] = [];
    for (const ms of ROUND_TRIPS_MS) {
      const server = await startDistant(checkout, cleanup, owner, ms);
      const load = (requests: readonly string[], connections: number) =>
        withCpuTime(server.pid, httpArm({ url: server.url, requests, connections, seconds: SECONDS }));
      const calls = payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
      const reads = payers.map(({ secret }) => getRequest("/v1/me", secret));
      arms.push(
        [`me${ms}`, load(reads, CALLERS)],
        [`generate${ms}`, load(calls, CALLERS)],
        [`one${ms}`, load(calls.slice(0, 1), 1)],
      );
    }
    return Object.fromEntries(arms) as Record<Arm, () => Promise<ServerLoad>>;
  },
  figures: ROUND_TRIPS_MS.flatMap((ms): Figure<Record<Arm, ServerLoad>>[] => [
    { name: `${ms} ms: GET /v1/me, ${CALLERS} callers`, unit: "/s", value: (r) => r[`me${ms}`].perSecond },
    { name: `${ms} ms: POST /v1/generate, ${CALLERS} callers`, unit: "/s", value: (r) => r[`generate${ms}`].perSecond },
    { name: "  p50", unit: "ms", value: (r) => r[`generate${ms}`].p50Ms },
    { name: "  CPU time of the server per call", unit: "µs", value: (r) => r[`generate${ms}`].cpuMicros },
    { name: `${ms} ms: POST /v1/generate, one caller, p50`, unit: "ms", value: (r) => r[`one${ms}`].p50Ms },
  ]),
};

/** A server that reaches the database of another one over the delay. */
async function startDistant(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  owner: Server,
  roundTripMs: number,
): Promise<Server> {
  const { host, port, username, password, database } = loginIn(owner.dataDir);
  const address = await startDelay(cleanup, join(host, `.s.PGSQL.${port}`), roundTripMs);
  return await startServer(checkout, cleanup, {
    env: { DATABASE_URL: `postgres://${username}:${password}@${address}/${database}?sslmode=disable` },
  });
}
