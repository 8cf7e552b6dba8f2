// Batched admission directly against the store, compared with one statement per call to the same function.
import { Admitter } from "../src/store/admit.ts";
import { Database } from "../src/store/driver/database.ts";
import { type BenchDatabase, type BenchKey, createKeys, type Figure, hammer, median } from "./support.ts";

const CALLERS = 256;
const KEYS = 1_000;
const SECONDS = 2;
const ROUNDS = 5;

export async function admission(database: BenchDatabase): Promise<Figure[]> {
  const keys = await createKeys(database.owner, KEYS);
  const pick = () => keys[Math.floor(Math.random() * keys.length)] as BenchKey;
  const options = { statementTimeoutMs: 5_000, maxStatements: 4_096, maxWaitMs: 5_000, role: "vx_app" };
  const pool = new Database(database.address, { ...options, connections: 2, name: "bench" });
  const admitter = new Admitter(pool, { pipelines: 2, maxWaiting: 16_384 });
  const singlePool = new Database(database.address, { ...options, connections: 16, name: "bench single" });

  const batched = () => admitter.admit({ ...pick(), scope: "read", limited: true });
  const hot = () => admitter.admit({ ...(keys[0] as BenchKey), scope: "read", limited: true });
  const single = () => {
    const { lane, fingerprint } = pick();
    return singlePool.call("admit", `{${lane}}`, `{"\\\\x${fingerprint}"}`, "{0}", "{1}", "{0}");
  };

  await hammer(CALLERS, 1, batched);
  await hammer(CALLERS, 1, single);
  const rounds: { batched: number; hot: number; single: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      batched: (await hammer(CALLERS, SECONDS, batched)).perSecond,
      hot: (await hammer(CALLERS, SECONDS, hot)).perSecond,
      single: (await hammer(CALLERS, SECONDS, single)).perSecond,
    });
  }
  await pool.close();
  await singlePool.close();
  return [
    {
      name: `admission, ${CALLERS} callers, ${KEYS} keys`,
      value: median(rounds.map((r) => r.batched)),
      unit: "/s",
      atLeast: 50_000,
    },
    { name: `admission, ${CALLERS} callers, one key`, value: median(rounds.map((r) => r.hot)), unit: "/s" },
    {
      name: "one statement per call, 16 connections",
      value: median(rounds.map((r) => r.single)),
      unit: "/s",
    },
    {
      name: "batched / one statement per call",
      value: median(rounds.map((r) => r.batched / r.single)),
      unit: "×",
      atLeast: 3,
    },
  ];
}
