import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { Random } from "../fuzz/random.ts";
import { Arena, type ArenaOptions } from "./arena.ts";
import type { Violation } from "./checker/facts.ts";
import type { Fault } from "./faults/fault.ts";
import { FAULTS, LONG_PAUSE } from "./faults/faults.ts";
import { printTable, type TableRow } from "./report.ts";
import { runRound } from "./round.ts";

export type TortureOptions = {
  readonly seed: number;
  readonly rounds: number;
  readonly isShort: boolean;
  readonly only: string | undefined;
};

const SERVERS = 2;
const MAX_SHOWN = 20;

/** Runs all faults, each alone and then mixed, and prints what became of the invariants. Returns the exit code. */
export async function runTorture(options: TortureOptions): Promise<number> {
  const { seed, rounds, isShort, only } = options;
  const startedAt = performance.now();
  printSettings(seed);
  const table: TableRow[] = [];
  const violations: Violation[] = [];
  const [seconds, perSecond] = isShort ? [6, 100] : [12, 120];
  for (let round = 0; round < rounds; round++) {
    const scenes = scenesOf(isShort, new Random(seed + round), only);
    const result = await withArena({ servers: SERVERS }, (arena) =>
      runRound({ arena, seed, first: round * 100 + 1, seconds, perSecond, scenes, say: console.log }),
    );
    table.push(...result.table);
    violations.push(...result.violations);
  }
  console.log();
  printTable(table);
  printViolations(violations);
  const took = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`\n${violations.length} violations in ${took} s (seed ${seed})`);
  return violations.length === 0 ? 0 : 1;
}

export function printSettings(seed: number): void {
  console.log(`seed ${seed}, commit ${commit()}`);
  const processor = `${cpus().length} × ${cpus()[0]?.model.trim()}`;
  console.log(`${processor}, Node ${process.versions.node}, ${SERVERS} servers, fsync on\n`);
}

export function printViolations(violations: readonly Violation[]): void {
  for (const { rule, text } of violations.slice(0, MAX_SHOWN)) console.log(`VIOLATION of ${rule}: ${text}`);
  if (violations.length > MAX_SHOWN) console.log(`… and ${violations.length - MAX_SHOWN} more`);
}

/** Whatever happens, also a signal: what was started is ended. */
export async function withArena<Result>(
  options: ArenaOptions,
  use: (arena: Arena) => Promise<Result>,
): Promise<Result> {
  const arena = await Arena.start(options);
  const stopOnSignal = () => void arena.stop().finally(() => process.exit(1));
  process.once("SIGINT", stopOnSignal);
  process.once("SIGTERM", stopOnSignal);
  try {
    return await use(arena);
  } finally {
    process.off("SIGINT", stopOnSignal);
    process.off("SIGTERM", stopOnSignal);
    await arena.stop();
  }
}

/** Every fault alone, then some at once. */
function scenesOf(isShort: boolean, random: Random, only: string | undefined): (readonly Fault[])[] {
  const alone: (readonly Fault[])[] = [...FAULTS, ...(isShort ? [] : [LONG_PAUSE])].map((fault) => [fault]);
  if (only !== undefined) return alone.filter(([fault]) => fault?.name.includes(only));
  const strong = FAULTS.slice(1);
  const mixed = Array.from({ length: isShort ? 1 : 3 }, () =>
    Array.from({ length: 3 }, () => strong.splice(random.below(strong.length), 1)[0] as Fault),
  );
  return [...alone, ...mixed];
}

function commit(): string {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
