// Servers that share one PostgreSQL. CPU time and batch size per call are measured apart, because on one machine all processes
// share the cores: they say what servers and PostgreSQL with cores of their own can do.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loginIn } from "../../test/support/embedded.ts";
import type { Checkout } from "../checkout.ts";
import { cpuMicrosOf } from "../cpu-time.ts";
import { generateBody, httpArm, postRequest } from "../http-load.ts";
import type { Load } from "../load.ts";
import type { Figure, Part } from "../part.ts";
import { createPayers } from "../payers.ts";
import { type Server, startServer } from "../server.ts";

const ACCOUNTS = 1_000;
const CONNECTIONS = 128;
const SECONDS = 3;
/** Each server gets as much load before, alone, so that its code is compiled. */
const WARM_UP = { connections: 64, seconds: 3 };
const COUNTS = [1, 2, 4, 8] as const;

type ReplicasLoad = Load & {
  /** Per call. */
  readonly serverMicros: number;
  readonly postgresMicros: number;
  /** Calls, or holds and settlements, per statement. */
  readonly admissionBatch: number;
  readonly billingBatch: number;
};

type Count = (typeof COUNTS)[number];
/** "shared": all servers together have as many connections as one has alone; "full": each has; "alone": one connection. */
type Arm = "alone" | `${"shared" | "full"}${Count}`;

export const replicas: Part<Record<Arm, ReplicasLoad>> = {
  rounds: 3,
  warmUpRounds: 0,
  open: async (checkout, cleanup) => {
    const servers = await startServers(checkout, cleanup);
    const first = servers[0] as Server;
    const payers = await createPayers(first, ACCOUNTS);
    const requests = payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret));
    for (const { url } of servers) await httpArm({ ...WARM_UP, url, requests })();
    const postmaster = Number(readFileSync(join(first.dataDir, "postgres/postmaster.pid"), "utf8").split("\n")[0]);
    const arm = (count: Count, connections: number) => () =>
      measureServers(servers.slice(0, count), { postmaster, requests, connections });
    const arms = COUNTS.flatMap((count) => [
      [`shared${count}`, arm(count, CONNECTIONS / count)],
      ...(count === 1 ? [] : [[`full${count}`, arm(count, CONNECTIONS)]]),
    ]);
    arms.push(["alone", arm(1, 1)]);
    return Object.fromEntries(arms) as Record<Arm, () => Promise<ReplicasLoad>>;
  },
  figures: [
    ...figuresOf("alone", 1, 1),
    ...COUNTS.flatMap((count) => [
      ...figuresOf(`shared${count}`, count, CONNECTIONS / count),
      ...(count === 1 ? [] : figuresOf(`full${count}`, count, CONNECTIONS)),
    ]),
  ],
};

/** All use the embedded PostgreSQL of the first one. */
async function startServers(checkout: Checkout, cleanup: AsyncDisposableStack): Promise<Server[]> {
  const first = await startServer(checkout, cleanup);
  const { host, username, password, database } = loginIn(first.dataDir);
  const url = `postgres:///${database}?host=${encodeURIComponent(host)}&user=${username}&password=${password}`;
  const others = Array.from({ length: Math.max(...COUNTS) - 1 }, () =>
    startServer(checkout, cleanup, { env: { DATABASE_URL: url } }),
  );
  return [first, ...(await Promise.all(others))];
}

async function measureServers(
  servers: readonly Server[],
  { postmaster, requests, connections }: { postmaster: number; requests: readonly string[]; connections: number },
): Promise<ReplicasLoad> {
  const read = async () => ({
    ...cpuTimes(servers, postmaster),
    admission: await batchesOf(servers, "admission"),
    billing: await batchesOf(servers, "billing"),
  });
  const before = await read();
  const startedAt = performance.now();
  const loads = await Promise.all(servers.map(({ url }) => httpArm({ url, requests, connections, seconds: SECONDS })()));
  const seconds = (performance.now() - startedAt) / 1_000;
  const after = await read();
  const perSecond = loads.reduce((sum, load) => sum + load.perSecond, 0);
  const calls = perSecond * seconds;
  const mean = (batcher: "admission" | "billing") =>
    (after[batcher].items - before[batcher].items) / (after[batcher].batches - before[batcher].batches);
  return {
    perSecond,
    p50Ms: average(loads.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...loads.map(({ p99Ms }) => p99Ms)),
    serverMicros: (after.serverMicros - before.serverMicros) / calls,
    postgresMicros: (after.postgresMicros - before.postgresMicros) / calls,
    admissionBatch: mean("admission"),
    billingBatch: mean("billing"),
  };
}

/** PostgreSQL is a child of the first server. */
function cpuTimes(servers: readonly Server[], postmaster: number) {
  const postgresMicros = cpuMicrosOf(postmaster);
  return { postgresMicros, serverMicros: servers.reduce((sum, { pid }) => sum + cpuMicrosOf(pid), -postgresMicros) };
}

async function batchesOf(servers: readonly Server[], batcher: string): Promise<{ items: number; batches: number }> {
  const texts = await Promise.all(servers.map((server) => server.readMetrics()));
  const sum = (name: string) =>
    texts.reduce((total, text) => {
      const value = new RegExp(`^vx_batch_size_${name}\\{batcher="${batcher}"\\} (\\S+)$`, "m").exec(text)?.[1];
      return total + Number(value ?? 0);
    }, 0);
  return { items: sum("sum"), batches: sum("count") };
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function figuresOf(arm: Arm, count: Count, connections: number): Figure<Record<Arm, ReplicasLoad>>[] {
  return [
    { name: `${count} × ${connections} connections, POST /v1/generate`, unit: "/s", value: (r) => r[arm].perSecond },
    { name: `  ÷ 1 × ${CONNECTIONS}`, unit: "×", value: (r) => r[arm].perSecond / r.shared1.perSecond },
    { name: "  p50", unit: "ms", value: (r) => r[arm].p50Ms },
    { name: "  CPU time of the servers per call", unit: "µs", value: (r) => r[arm].serverMicros },
    { name: "  CPU time of PostgreSQL per call", unit: "µs", value: (r) => r[arm].postgresMicros },
    { name: "  calls per admission", unit: "×", value: (r) => r[arm].admissionBatch },
    { name: "  holds and settlements per statement", unit: "×", value: (r) => r[arm].billingBatch },
  ];
}
