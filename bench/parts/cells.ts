// Two cells on two PostgreSQL servers, compared with one cell on one, on the same cores.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded-postgres.ts";
import { urlTo } from "../../test/support/embedded.ts";
import type { Checkout } from "../checkout.ts";
import { cpuFigure, type ServerLoad, withCpuTime } from "../cpu-time.ts";
import { generateBody, getRequest, httpArm, postRequest } from "../http-load.ts";
import type { Figure, Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { startServer, temporaryFolder } from "../server.ts";

const ACCOUNTS = 1_000;
const CONNECTIONS = 64;
const SECONDS = 2;
const MIN_RATIO = 0.95;

type Path = "me" | "generate";
type Arm = `${Path}${"One" | "Two"}`;

export const cells: Part<Record<Arm, ServerLoad>> = {
  rounds: 12,
  warmUpRounds: 2,
  open: async (checkout, cleanup) => {
    const one = await startCells(checkout, cleanup, ["0-1023"]);
    const two = await startCells(checkout, cleanup, ["0-511", "512-1023"]);
    return { meOne: one.me, meTwo: two.me, generateTwo: two.generate, generateOne: one.generate };
  },
  figures: [...figuresOf("me", "GET /v1/me"), ...figuresOf("generate", "POST /v1/generate")],
};

/** A server with a cell for each of the ranges of lanes, on PostgreSQL servers of their own. */
async function startCells(
  checkout: Checkout,
  cleanup: AsyncDisposableStack,
  ranges: readonly string[],
): Promise<Record<Path, () => Promise<ServerLoad>>> {
  const databases = await Promise.all(ranges.map(() => startDatabase(cleanup)));
  const file = join(temporaryFolder(cleanup), "cells.yaml");
  const entries = ranges.map((lanes, i) => ({
    name: `cell_${i}`,
    database_url: databases[i]?.url,
    lanes,
  }));
  writeFileSync(file, JSON.stringify({ cells: entries }));
  const server = await startServer(checkout, cleanup, { env: { VX_CELLS: file } });
  const payers = await createPayers(server, ACCOUNTS);
  const pids = [server.pid, ...databases.map(({ pid }) => pid)];
  const arm = (requests: readonly string[]) =>
    withCpuTime(pids, httpArm({ url: server.url, requests, connections: CONNECTIONS, seconds: SECONDS }));
  return {
    me: arm(payers.map(({ secret }) => getRequest("/v1/me", secret))),
    generate: arm(payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret))),
  };
}

async function startDatabase(cleanup: AsyncDisposableStack): Promise<{ url: string; pid: number }> {
  const dataDir = temporaryFolder(cleanup);
  const embedded = await startEmbeddedPostgres({ dataDir, print: () => undefined });
  cleanup.defer(() => embedded.stop());
  const pid = Number(readFileSync(join(embedded.clusterDir, "postmaster.pid"), "utf8").split("\n")[0]);
  return { url: urlTo(embedded), pid };
}

function figuresOf(path: Path, call: string): Figure<Record<Arm, ServerLoad>>[] {
  const [one, two] = [`${path}One`, `${path}Two`] as const;
  return [
    { name: `${call}, one cell, ${CONNECTIONS} connections`, unit: "/s", value: (r) => r[one].perSecond },
    cpuFigure(one),
    { name: `${call}, two cells on two PostgreSQL servers`, unit: "/s", value: (r) => r[two].perSecond },
    cpuFigure(two),
    { name: "  ÷ one cell", unit: "×", min: MIN_RATIO, value: (r) => r[two].perSecond / r[one].perSecond },
    {
      name: "  ÷ one cell, CPU time per call",
      unit: "×",
      value: (r) => r[two].cpuMicros / r[one].cpuMicros,
    },
  ];
}
