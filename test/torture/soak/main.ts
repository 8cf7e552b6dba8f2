// Checks that nothing grows: npm run soak [-- --minutes N --seed N --per-second N]. Sends mixed calls at half
// of the maximum rate measured for two servers and checks each reply against the ledger. Prints memory,
// handles and queues over time, writes docs/soak.svg, and exits with 1 if something grew or an invariant
// broke.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Arena } from "../arena.ts";
import { checkEpisode } from "../checker/check.ts";
import type { Violation } from "../checker/facts.ts";
import { runEpisode } from "../episode.ts";
import { NO_FAULT } from "../faults/faults.ts";
import { Probe } from "../probe.ts";
import { type ProbeLine, readProbe } from "../probe-file.ts";
import { printSettings, printViolations, withArena } from "../torture.ts";
import { chartOf, type Series } from "./chart.ts";
import { type Gauges, GaugeWatch } from "./gauges.ts";
import { topRate } from "./top-rate.ts";

const CHUNK_SECONDS = 20;
const CHART = new URL("../../../docs/soak.svg", import.meta.url);
/** Maximum ratio of the last third to the second, which tolerates the variation of garbage collection. */
const MAX_GROWTH = 1.15;
const MIB = 1_048_576;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    "per-second": { type: "string" },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
printSettings(seed);
process.exit((await withArena({ servers: 2, env: { TORTURE_COLLECTS: "1" } }, soak)) ? 0 : 1);

async function soak(arena: Arena): Promise<boolean> {
  const probe = await Probe.create(arena);
  await probe.areServing(10_000);
  const perSecond = values["per-second"] === undefined ? (await topRate(arena, seed)) / 2 : Number(values["per-second"]);
  console.log(`${perSecond} calls per second for ${minutes} minutes`);
  const from = performance.timeOrigin + performance.now();
  const gauges = new GaugeWatch(arena);
  const violations: Violation[] = [];
  let [calls, rows, late] = [0, 0, 0];
  for (let chunk = 0; chunk < (minutes * 60) / CHUNK_SECONDS; chunk++) {
    const options = { arena, seed, number: 200 + chunk, seconds: CHUNK_SECONDS, perSecond, faults: [NO_FAULT] };
    const episode = await runEpisode(options);
    const verdict = await checkEpisode(arena, episode);
    violations.push(...verdict.violations);
    calls += episode.history.entries.length;
    late += episode.history.late;
    rows += verdict.rows;
    arena.upstream.executions.length = 0;
  }
  await gauges.stop();
  printViolations(violations);
  console.log(`${calls} calls, ${late} sent more than 50 ms late, ${rows} ledger rows, ${violations.length} violations`);
  const probes = arena.servers.map((server) => readProbe(server.probeText()).filter(({ at }) => at >= from));
  const series = seriesOf(probes, gauges.samples);
  writeFileSync(CHART, chartOf(`Two servers, ${perSecond} calls per second`, minutes, series));
  return report(series) && violations.length === 0;
}

function seriesOf(probes: readonly (readonly ProbeLine[])[], gauges: readonly Gauges[]): Series[] {
  const length = Math.min(...probes.map((lines) => lines.length));
  const sum = (value: (line: ProbeLine) => number) =>
    Array.from({ length }, (_, i) => probes.reduce((total, lines) => total + value(lines[i] as ProbeLine), 0));
  const most = (value: (line: ProbeLine) => number) =>
    Array.from({ length }, (_, i) => Math.max(...probes.map((lines) => value(lines[i] as ProbeLine))));
  return [
    { name: "resident memory", unit: "MiB", values: sum(({ rss }) => rss / MIB) },
    { name: "heap", unit: "MiB", values: sum(({ heapUsed }) => heapUsed / MIB) },
    { name: "heap after a collection", unit: "MiB", values: keptOf(probes) },
    // Each running call has open handles, so a leak shows when few calls run.
    { name: "open handles at rest", unit: "", values: leastOf(sum(({ handles }) => handles)) },
    { name: "longest pause", unit: "ms", values: most(({ pauseMs }) => pauseMs) },
    { name: "admission queue", unit: "calls", values: gauges.map(({ admissionQueue }) => admissionQueue) },
    { name: "billing queue", unit: "calls", values: gauges.map(({ billingQueue }) => billingQueue) },
    { name: "running generations", unit: "", values: gauges.map(({ running }) => running) },
  ];
}

/** The minimum of each chunk. */
function leastOf(values: readonly number[]): number[] {
  const chunks = Math.floor(values.length / CHUNK_SECONDS);
  return Array.from({ length: chunks }, (_, i) => Math.min(...values.slice(i * CHUNK_SECONDS, (i + 1) * CHUNK_SECONDS)));
}

/** Servers collect at different times, so this gives one value for each time that all of them have. */
function keptOf(probes: readonly (readonly ProbeLine[])[]): number[] {
  const kept = probes.map((lines) => lines.flatMap(({ heapKept }) => heapKept ?? []));
  const length = Math.min(...kept.map((values) => values.length));
  return Array.from({ length }, (_, i) => kept.reduce((total, values) => total + (values[i] ?? 0), 0) / MIB);
}

/** Prints the median of each third. Returns whether the last third is within the limit. */
function report(series: readonly Series[]): boolean {
  let isFlat = true;
  console.log("| | first third | second third | last third | maximum |");
  console.log("|---|--:|--:|--:|--:|");
  for (const { name, unit, values } of series) {
    const third = Math.floor(values.length / 3);
    const thirds = [0, 1, 2].map((i) => median(values.slice(i * third, (i + 1) * third)));
    const [, second = 0, last = 0] = thirds;
    const hasGrown = name !== "longest pause" && last > second * MAX_GROWTH + 16;
    if (hasGrown) isFlat = false;
    const cells = [...thirds, Math.max(...values)].map((value) => value.toFixed(0)).join(" | ");
    console.log(`| ${name}${unit === "" ? "" : `, ${unit}`} | ${cells} |${hasGrown ? " GREW" : ""}`);
  }
  return isFlat;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}
