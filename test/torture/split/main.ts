// Moves lanes to promoted standbys under load: npm run test:split [-- --short --seed N --splits N --rounds N --failovers N].
// Each round lets one of two cells fail, with and without a split at the same time. With each failover, the source of a split fails
// over, after each step in turn.
import { parseArgs } from "node:util";
import { SPLIT_STEPS, type SplitStep } from "../../../src/database/cells/split-cell.ts";
import type { Arena } from "../arena.ts";
import type { ArenaCell } from "../cells.ts";
import type { Violation } from "../checker/facts.ts";
import { Replication } from "../failover/replication.ts";
import { cutCell, killCell, pauseCell } from "../faults/cells.ts";
import { killDatabase } from "../faults/databases.ts";
import type { Fault } from "../faults/fault.ts";
import { killServer } from "../faults/servers.ts";
import { printTable, type TableRow } from "../report.ts";
import { runRound } from "../round.ts";
import { printSettings, printViolations, withArena } from "../torture.ts";
import { splitAndFailOver } from "./failover-fault.ts";
import { splitUnderLoad } from "./split-fault.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
    splits: { type: "string", default: "20" },
    rounds: { type: "string", default: "1" },
    failovers: { type: "string", default: "1" },
  },
});
const seed = Number(values.seed);
const [splits, rounds, failovers] = values.short
  ? [1, 0, 0]
  : [Number(values.splits), Number(values.rounds), Number(values.failovers)];
if (![seed, splits, rounds, failovers].every(Number.isSafeInteger)) {
  console.error("--seed, --splits, --rounds and --failovers are whole numbers");
  process.exit(2);
}
/** Each cell is a PostgreSQL of its own. */
const MAX_SPLITS_OF_ARENA = 4;
const PATIENCE_MS = 100_000;
const MAX_UNOWNED_MS = 2_000;
const STEPS = SPLIT_STEPS.slice(0, -1);
/** Those after which the source has given up the lanes. */
const FAILOVER_STEPS: readonly SplitStep[] = ["released", "confirmed", "promoted", "claimed"];

const split = (cell: number, killedAfter: readonly SplitStep[] = []) =>
  splitUnderLoad({ choose: (cells) => cells[cell] as ArenaCell, killedAfter, onSplit });

async function runScenes(first: number, scenes: readonly (readonly Fault[])[]): Promise<void> {
  await withArena({ servers: 2, hasCells: true }, (arena) => runIn(arena, first, scenes));
}

async function runFailovers(first: number): Promise<void> {
  await withArena({ servers: 2, hasCells: true, hasStandby: true }, async (arena) => {
    const replication = new Replication(arena, { isSynchronous: true, lagMs: 0 });
    const scenes = FAILOVER_STEPS.map((step) => [splitAndFailOver(step, replication)]);
    try {
      await runIn(arena, first, scenes);
    } finally {
      await replication.stop();
    }
  });
}

async function runIn(arena: Arena, first: number, scenes: readonly (readonly Fault[])[]): Promise<void> {
  const result = await runRound({
    arena,
    seed,
    first,
    seconds: values.short ? 3 : 8,
    perSecond: 100,
    scenes,
    say: console.log,
    patienceMs: PATIENCE_MS,
  });
  table.push(...result.table);
  violations.push(...result.violations);
}

printSettings(seed);
const startedAt = performance.now();
const table: TableRow[] = [];
const violations: Violation[] = [];
const unowned: number[] = [];
const onSplit = (ms: number | undefined) => {
  if (ms !== undefined) unowned.push(ms);
};
for (let done = 0; done < splits; done += MAX_SPLITS_OF_ARENA) {
  const count = Math.min(splits - done, MAX_SPLITS_OF_ARENA);
  const scenes = Array.from({ length: count }, (_, i) => [
    // The cells in turn, so that cells are split that were standbys.
    split(Math.floor(i / 2), (done + i) % 2 === 0 ? STEPS : []),
  ]);
  await runScenes(done * 10 + 1, scenes);
}
for (let round = 0; round < rounds; round++) {
  await runScenes(5_000 + round * 100, [
    [split(0)],
    [killCell],
    [pauseCell(7)],
    [cutCell],
    [killDatabase],
    [killCell, split(0, ["released", "confirmed"])],
    [split(2), killServer],
    [pauseCell(7), split(0)],
  ]);
}
for (let failover = 0; failover < failovers; failover++) await runFailovers(6_000 + failover * 100);
for (const ms of unowned.filter((time) => time > MAX_UNOWNED_MS))
  violations.push({ rule: `lanes have an owner again within ${MAX_UNOWNED_MS} ms`, text: `${ms} ms` });
console.log();
printTable(table);
printViolations(violations);
const [sorted, took] = [unowned.sort((a, b) => a - b), Math.round((performance.now() - startedAt) / 1_000)];
if (sorted.length > 0) {
  console.log(
    `\nlanes without an owner: median ${sorted[Math.floor(sorted.length / 2)]} ms, at most ${sorted.at(-1)} ms (${sorted.length} splits that were not killed)`,
  );
}
console.log(`${violations.length} violations in ${table.length} episodes, ${took} s (seed ${seed})`);
// Exit explicitly: idle keep-alive connections of the clients would keep the process alive.
process.exit(violations.length === 0 ? 0 : 1);
