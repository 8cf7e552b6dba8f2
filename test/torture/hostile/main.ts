// Attacks a server that other callers use: npm run torture:hostile [-- --seconds N --bursts N --only name --seed N]. The server
// runs in its own process, which records its memory and event loop pauses; an honest caller measures the
// latency of GET /v1/me. On a small machine the attackers use both processors, so a pause is judged by the
// CPU time of the server's main thread; the rest is waiting for a processor. Exits with 1 if a bound is
// broken.

import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Arena } from "../arena.ts";
import { readProbe } from "../probe-file.ts";
import { Operator } from "../tenants.ts";
import { printSettings, withArena } from "../torture.ts";
import { ATTACKS, type Attack } from "./attacks.ts";
import { createCallers } from "./callers.ts";
import { tortureMemory } from "./memory.ts";
import { Witness } from "./witness.ts";

const MAX_RSS_MIB = 1_024;
const MAX_WORK_MS = 50;
const REST_MS = 2_500;

const CALM: Attack = { name: "none", run: ({ untilAt }) => wait(untilAt - performance.now()) };

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "6" },
    bursts: { type: "string", default: "20" },
    only: { type: "string" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
printSettings(seed);
const isChosen = (name: string) => values.only === undefined || name.includes(values.only);
console.log(
  "| attack | longest work | longest pause | memory before / peak / after | other callers: calls | failed | p50 / p99 / max ms |",
);
console.log("|---|--:|--:|--:|--:|--:|--:|");
const isFine = await withArena({ servers: 1 }, async (arena) => {
  const operator = new Operator(() => `http://127.0.0.1:${arena.servers[0]?.adminPort}`);
  const [secret] = await createCallers(operator, 1);
  // The next probe line still includes the work of the start.
  await wait(REST_MS);
  const results = [];
  const chosen = ATTACKS.filter(({ name }) => isChosen(name));
  for (const attack of [CALM, ...chosen]) results.push(await attackWith(attack, arena, secret));
  return results.every(Boolean);
});
const isMemoryFine = !isChosen("bursts of large requests") || (await tortureMemory(seed, Number(values.bursts)));
process.exit(isFine && isMemoryFine ? 0 : 1);

async function attackWith({ name, run }: Attack, arena: Arena, secret: string): Promise<boolean> {
  const [server] = arena.servers;
  if (!server) return false;
  const from = performance.now();
  const before = readProbe(server.probeText()).at(-1)?.rss ?? 0;
  const witness = new Witness(server.url, secret);
  await run({ url: server.url, secret, untilAt: from + seconds * 1_000 });
  const { calls, failed, p50Ms, p99Ms, maxMs } = await witness.stop();
  await wait(REST_MS);
  const probes = readProbe(server.probeText()).filter(({ at }) => at >= performance.timeOrigin + from);
  const pauseMs = Math.max(...probes.map((probe) => probe.pauseMs));
  const workMs = Math.max(...probes.map((probe) => probe.workMs));
  const most = Math.max(...probes.map(({ rss }) => rss));
  const mib = (bytes: number) => Math.round(bytes / 1_048_576);
  const memory = [before, most, probes.at(-1)?.rss ?? 0].map(mib).join(" / ");
  const isFine = server.isRunning && failed === 0 && workMs <= MAX_WORK_MS && mib(most) <= MAX_RSS_MIB;
  console.log(
    `| ${name} | ${workMs.toFixed(0)} ms | ${pauseMs.toFixed(0)} ms | ${memory} MiB | ${calls} | ${failed} | ${p50Ms.toFixed(1)} / ${p99Ms.toFixed(1)} / ${maxMs.toFixed(1)} |${isFine ? "" : " MISSED"}`,
  );
  return isFine;
}
