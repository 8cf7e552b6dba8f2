import { buildCitus } from "../../citus/cluster.ts";
import type { Fault } from "../faults/fault.ts";
import { NO_FAULT } from "../faults/faults.ts";
import { killServer, pauseServer, terminateServer } from "../faults/servers.ts";
import { printTable } from "../report.ts";
import { runRound } from "../round.ts";
import { printSettings, printViolations, withArena } from "../torture.ts";
import { killCoordinator, killDuringMove, killWorker, moveSchemas, pauseWorker } from "./faults.ts";

const PATIENCE_MS = 100_000;
const MOVES_OF_EPISODE = 4;

type CitusOptions = {
  readonly seed: number;
  /** Moves under load in all, apart from those that fail because a worker is killed. */
  readonly moves: number;
  readonly isShort: boolean;
  readonly only: string | undefined;
};

/** Two cells in a cluster with two workers, whose schemas move and whose nodes fail under load. Returns the exit code. */
export async function runCitusTorture({ seed, moves, isShort, only }: CitusOptions): Promise<number> {
  const source = process.env.VX_TEST_CITUS_SOURCE;
  if (!source) {
    console.warn("SKIPPED: Citus is not tortured: VX_TEST_CITUS_SOURCE must name a checkout of it");
    return 0;
  }
  buildCitus(source);
  printSettings(seed);
  const startedAt = performance.now();
  const moved: number[] = [];
  const scenes = (isShort ? shortScenes : allScenes)(moves, (ms) => moved.push(ms)).filter(
    (faults) => only === undefined || only.split(",").some((part) => faults.some(({ name }) => name.includes(part))),
  );
  const { table, violations } = await withArena({ servers: 2, isCitus: true }, (arena) =>
    runRound({
      arena,
      seed,
      first: 1,
      seconds: isShort ? 5 : 10,
      perSecond: 100,
      scenes,
      say: console.log,
      patienceMs: PATIENCE_MS,
    }),
  );
  console.log();
  printTable(table);
  printViolations(violations);
  const sorted = moved.map(Math.round).sort((a, b) => a - b);
  const took = Math.round((performance.now() - startedAt) / 1_000);
  console.log(
    `\n${moved.length} moves under load: median ${sorted[Math.floor(sorted.length / 2)]} ms, at most ${sorted.at(-1)} ms`,
  );
  console.log(`${violations.length} violations in ${table.length} episodes, ${took} s (seed ${seed})`);
  return violations.length === 0 ? 0 : 1;
}

type Scenes = (moves: number, onMove: (ms: number) => void) => (readonly Fault[])[];

const shortScenes: Scenes = (count, onMove) => [[moveSchemas({ count, isAudited: true, onMove })], [killWorker("b")]];

const allScenes: Scenes = (moves, onMove) => {
  // Beside servers that fail, and that end.
  const beside: readonly (readonly Fault[])[] = [[], [killServer], [terminateServer], [pauseServer(10)]];
  const moving = Array.from({ length: Math.ceil(moves / MOVES_OF_EPISODE) }, (_, i) => [
    moveSchemas({
      count: Math.min(MOVES_OF_EPISODE, moves - i * MOVES_OF_EPISODE),
      // The server that answers an audit may be the one that fails.
      isAudited: beside[i % beside.length]?.length === 0,
      onMove,
    }),
    ...(beside[i % beside.length] ?? []),
  ]);
  return [
    [NO_FAULT],
    ...moving,
    [killWorker("a")],
    [killWorker("b")],
    [pauseWorker("a", 10)],
    [pauseWorker("b", 10)],
    [killCoordinator],
    [killDuringMove("source", 500)],
    [killDuringMove("target", 500)],
    [killDuringMove("source", 1_500)],
    [killDuringMove("target", 1_500)],
    // Moves go on after those that failed.
    [moveSchemas({ count: 2, onMove })],
  ];
};
