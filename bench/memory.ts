// Memory of an idle server, and of the store after many admissions.
import { Admitter } from "../src/store/admit.ts";
import { Database } from "../src/store/driver/database.ts";
import { START } from "../test/support/start-script.ts";
import { serverEnv } from "./grpc-me.ts";
import {
  type BenchDatabase,
  type BenchKey,
  createKeys,
  type Figure,
  residentMib,
  startProgram,
} from "./support.ts";

const CALLERS = 512;
const IDLE_MS = 3_000;

export async function idleMemory(database: BenchDatabase): Promise<Figure[]> {
  const server = startProgram(START, serverEnv(database.url));
  await server.next(/^vx ready/);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const value = residentMib(server.pid);
  await server.stop();
  return [{ name: "resident memory of an idle server", value, unit: "MiB", atMost: 150 }];
}

/**
 * Compares the memory after half of the admissions, when the heap has grown to its working size, with the
 * memory at the end.
 */
export async function admissionMemory(database: BenchDatabase, count: number): Promise<Figure[]> {
  const [key] = await createKeys(database.owner, 1);
  const options = { statementTimeoutMs: 5_000, maxStatements: 64, maxWaitMs: 5_000, role: "vx_app" };
  const pool = new Database(database.address, { ...options, connections: 2, name: "bench" });
  const admitter = new Admitter(pool, { pipelines: 2, maxWaiting: 16_384 });
  let left = count;
  let early = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (left > 0) {
        left--;
        await admitter.admit({ ...(key as BenchKey), scope: "read", limited: true });
        if (early === 0 && left < count / 2) early = residentAfterCollection();
      }
    }),
  );
  const perSecond = (count / (performance.now() - startedAt)) * 1000;
  const late = residentAfterCollection();
  await pool.close();
  return [
    { name: `${count.toLocaleString("en")} admissions`, value: perSecond, unit: "/s" },
    { name: "  resident memory after half of them", value: early, unit: "MiB" },
    { name: "  resident memory after all", value: late, unit: "MiB" },
    { name: "  live heap after all", value: process.memoryUsage().heapUsed / 1_048_576, unit: "MiB" },
    { name: "  growth", value: late / early, unit: "×", atMost: 1.1 },
  ];
}

function residentAfterCollection(): number {
  globalThis.gc?.();
  return residentMib(process.pid);
}
