// Two cells on two PostgreSQL servers, compared with one cell on one, on the same cores.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres.ts";
import { urlTo } from "../../test/support/embedded.ts";
import type { Checkout } from "../checkout.ts";
import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { generateBody, getRequest, httpArm, postRequest } from "../http-load.ts";
import type { Figure, Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startServer, temporaryFolder } from "../server.ts";

const ACCOUNTS = 1_000;
/** A cell gets half of the calls, so its batches are half as large: the more calls at once, the less that costs. */
const CONNECTIONS = [64, 256, 512] as const;
const SECONDS = 2;
const LIMITS = { min: 0.75, goal: 0.95 };

type Call = `${"me" | "generate"}${(typeof CONNECTIONS)[number]}`;
type Arm = `${Call}${"One" | "Two"}`;

export const cells: Part<Record<Arm, ServerLoad>> = {
  rounds: 8,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const one = await startCells(checkout, cleanup, ["0-1023"]);
    const two = await startCells(checkout, cleanup, ["0-511", "512-1023"]);
    const arms = Object.keys(one).flatMap((call) => [
      [`${call}One`, one[call as Call]],
      [`${call}Two`, two[call as Call]],
    ]);
    return Object.fromEntries(arms) as Record<Arm, () => Promise<ServerLoad>>;
  },
  figures: CONNECTIONS.flatMap((connections) => [
    ...figuresOf(`me${connections}`, `GET /v1/me, ${connections} connections`),
    ...figuresOf(`generate${connections}`, `POST /v1/generate, ${connections} connections`),
  ]),
};

/** A server with a cell for each of the ranges of lanes, on PostgreSQL servers of their own. */
async function startCells(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  ranges: readonly string[],
): Promise<Record<Call, () => Promise<ServerLoad>>> {
  const databases = await Promise.all(ranges.map(() => startDatabase(cleanup)));
  const file = join(temporaryFolder(cleanup), "cells.yaml");
  const entries = ranges.map((lanes, i) => ({ name: `cell_${i}`, database_url: databases[i]?.url, lanes }));
  writeFileSync(file, JSON.stringify({ cells: entries }));
  const server = await startServer(checkout, cleanup, { env: { VX_CELLS: file } });
  const payers = await createPayers(server, ACCOUNTS);
  const pids = [server.pid, ...databases.map(({ pid }) => pid)];
  const arms = CONNECTIONS.flatMap((connections) => {
    const arm = (requests: readonly string[]) =>
      withCpuTime(pids, httpArm({ url: server.url, requests, connections, seconds: SECONDS }));
    return [
      [`me${connections}`, arm(payers.map(({ secret }) => getRequest("/v1/me", secret)))],
      [`generate${connections}`, arm(payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret)))],
    ];
  });
  return Object.fromEntries(arms) as Record<Call, () => Promise<ServerLoad>>;
}

async function startDatabase(cleanup: AsyncDisposableStack): Promise<{ url: string; pid: number }> {
  const dataDir = temporaryFolder(cleanup);
  const embedded = await startEmbeddedPostgres({ dataDir, print: () => undefined });
  cleanup.defer(() => embedded.stop());
  const pid = Number(readFileSync(join(embedded.clusterDir, "postmaster.pid"), "utf8").split("\n")[0]);
  return { url: urlTo(embedded), pid };
}

function figuresOf(call: Call, name: string): Figure<Record<Arm, ServerLoad>>[] {
  const [one, two] = [`${call}One`, `${call}Two`] as const;
  return [
    { name: `${name}, one cell`, unit: "/s", value: (r) => r[one].perSecond },
    cpuFigure(one),
    { name: `${name}, two cells`, unit: "/s", value: (r) => r[two].perSecond },
    cpuFigure(two),
    { name: "  ÷ one cell", unit: "×", ...LIMITS, value: (r) => r[two].perSecond / r[one].perSecond },
    { name: "  ÷ one cell, CPU time per call", unit: "×", value: (r) => r[two].cpuMicros / r[one].cpuMicros },
  ];
}
