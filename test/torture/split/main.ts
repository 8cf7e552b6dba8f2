// Moves lanes to promoted standbys under load: npm run test:split [-- --short --seed N --splits N].
import { parseArgs } from "node:util";
import { SPLIT_STEPS } from "../../../src/app/split-cell.ts";
import type { Violation } from "../checker/facts.ts";
import { printTable, type TableRow } from "../report.ts";
import { runRound } from "../round.ts";
import { printSettings, printViolations, withArena } from "../torture.ts";
import { splitUnderLoad } from "./split-fault.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
    splits: { type: "string", default: "20" },
  },
});
const [seed, splits] = [Number(values.seed), values.short ? 2 : Number(values.splits)];
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(splits) || splits < 1) {
  console.error("--seed and --splits are whole numbers");
  process.exit(2);
}
/** Each cell is a PostgreSQL of its own. */
const MAX_SPLITS_OF_ARENA = 4;
const PATIENCE_MS = 100_000;
const MAX_UNOWNED_MS = 2_000;
const STEPS = SPLIT_STEPS.slice(0, -1);

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
    splitUnderLoad({
      // The one that was split least recently, so that cells are split that were standbys.
      choose: (cells) => cells[Math.floor(i / 2)] ?? (cells[0] as (typeof cells)[number]),
      killedAfter: (done + i) % 2 === 0 ? STEPS : [],
      onSplit,
    }),
  ]);
  const result = await withArena({ servers: 2, hasCells: true }, (arena) =>
    runRound({
      arena,
      seed,
      first: done * 10 + 1,
      seconds: values.short ? 3 : 8,
      perSecond: 100,
      scenes,
      say: console.log,
      patienceMs: PATIENCE_MS,
    }),
  );
  table.push(...result.table);
  violations.push(...result.violations);
}
for (const ms of unowned.filter((time) => time > MAX_UNOWNED_MS))
  violations.push({ rule: `lanes have an owner again within ${MAX_UNOWNED_MS} ms`, text: `${ms} ms` });
console.log();
printTable(table);
printViolations(violations);
const [sorted, took] = [unowned.sort((a, b) => a - b), Math.round((performance.now() - startedAt) / 1_000)];
console.log(
  `\nlanes without an owner: median ${sorted[Math.floor(sorted.length / 2)]} ms, at most ${sorted.at(-1)} ms (${sorted.length} splits that were not killed)`,
);
console.log(`${violations.length} violations in ${splits} splits, ${took} s (seed ${seed})`);
// Exit explicitly: idle keep-alive connections of the clients would keep the process alive.
process.exit(violations.length === 0 ? 0 : 1);
