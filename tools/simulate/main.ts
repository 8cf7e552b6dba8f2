// Computes batch sizes, latencies and the use of cores from measured costs:
// npm run simulate [-- --calls 20000 --postgres-cores 8].
import { parseArgs } from "node:util";
import { Random } from "../../test/fuzz/random.ts";
import { type Costs, simulate } from "./simulation.ts";

const { values } = parseArgs({
  options: {
    /** Calls per second of all servers together. By default each server gets --calls-per-server. */
    calls: { type: "string" },
    "calls-per-server": { type: "string", default: "1000" },
    servers: { type: "string", default: "1,4,16,64" },
    cells: { type: "string", default: "1,4,16,64" },
    "postgres-cores": { type: "string", default: "8" },
    pipelines: { type: "string", default: "8" },
    seconds: { type: "string", default: "2" },
    "server-per-call": { type: "string", default: "172" },
    "server-per-statement": { type: "string", default: "364" },
    "postgres-per-call": { type: "string", default: "108" },
    "postgres-per-statement": { type: "string", default: "760" },
    "round-trip-ms": { type: "string", default: "0.5" },
    "commit-ms": { type: "string", default: "1" },
  },
});

const numbers = (text: string) => text.split(",").map(Number);
const costs: Costs = {
  serverPerCall: Number(values["server-per-call"]),
  serverPerStatement: Number(values["server-per-statement"]),
  postgresPerCall: Number(values["postgres-per-call"]),
  postgresPerStatement: Number(values["postgres-per-statement"]),
  roundTripMs: Number(values["round-trip-ms"]),
  commitMs: Number(values["commit-ms"]),
};
const postgresCores = Number(values["postgres-cores"]);
const pipelines = Number(values.pipelines);
const all = [...numbers(values.servers), ...numbers(values.cells), postgresCores, pipelines, ...Object.values(costs)];
if (all.some((value) => !(value > 0))) {
  console.error("all options are positive numbers; --servers and --cells are lists of them, such as 1,2,4");
  process.exit(2);
}
/** Fewer completed calls mean a queue that grows. */
const MIN_COMPLETED = 0.95;

console.log(`simulated, not measured; ${postgresCores} PostgreSQL cores per cell, one core per server\n`);
console.log(
  "| servers | cells | calls per second | holds and settlements per statement | most statements in flight | p50 / p99 added ms | server cores used | PostgreSQL cores used |",
);
console.log("|--:|--:|--:|--:|--:|--:|--:|--:|");
for (const servers of numbers(values.servers)) {
  for (const cells of numbers(values.cells)) {
    const callsPerSecond = Number(values.calls ?? Number(values["calls-per-server"]) * servers);
    const random = new Random(1);
    const outcome = simulate({
      servers,
      cells,
      postgresCores,
      pipelines,
      callsPerSecond,
      seconds: Number(values.seconds),
      costs,
      random: () => random.next(),
    });
    const isOverloaded = outcome.completedPerSecond < MIN_COMPLETED * callsPerSecond;
    const times = `${outcome.p50Ms.toFixed(1)} / ${outcome.p99Ms.toFixed(1)}`;
    const cellsText = [
      servers,
      cells,
      isOverloaded ? `${callsPerSecond}, too many: ${Math.round(outcome.completedPerSecond)} completed` : callsPerSecond,
      outcome.batch.toFixed(1),
      outcome.maxInFlight,
      isOverloaded ? "–" : times,
      percent(outcome.serverUse),
      percent(outcome.postgresUse),
    ];
    console.log(`| ${cellsText.join(" | ")} |`);
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
