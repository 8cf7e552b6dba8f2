import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { Random } from "../fuzz/random.ts";
import { Arena, type ArenaOptions } from "./arena.ts";
import { groupBy, type Violation } from "./checker/facts.ts";
import type { Fault } from "./faults/fault.ts";
import { FAULTS, LONG_PAUSE } from "./faults/faults.ts";
import { fullDisk, mountSmallDisk } from "./faults/full-disk.ts";
import { printTable, type TableRow } from "./report.ts";
import { type RoundResult, runRound } from "./round.ts";

export type TortureOptions = {
  readonly seed: number;
  readonly rounds: number;
  readonly isShort: boolean;
  /** A comma-separated list of texts; only faults whose names contain one of them run. */
  readonly only: string | undefined;
  /** Of the way to the database and back. */
  readonly roundTripMs: number;
};

const SERVERS = 2;
/** In the short form, two arenas run at the same time: the calls of one take a third of two cores. */
const SHORT_ARENAS = 2;
/** Of each rule. */
const MAX_SHOWN = 10;
const PATIENCE_MS = 100_000;

/**
 * Runs every fault alone, and several at once, and prints the results of the checks. Returns the exit code.
 */
export async function runTorture(options: TortureOptions): Promise<number> {
  const { seed, rounds, isShort, roundTripMs } = options;
  const startedAt = performance.now();
  printSettings(seed);
  const table: TableRow[] = [];
  const violations: Violation[] = [];
  const [seconds, perSecond] = isShort ? [5, 100] : [12, 120];
  const collect = (result: RoundResult) => {
    table.push(...result.table);
    violations.push(...result.violations);
  };
  const common = { seed, seconds, perSecond, say: console.log, patienceMs: PATIENCE_MS };
  for (let round = 0; round < rounds; round++) {
    const scenes = scenesOf(options, new Random(seed + round));
    const first = round * 100 + 1;
    const runFullDisk = async () => {
      if (!isChosen(options, "database disk full")) return;
      const result = await withFullDisk((fault, databaseFolder) =>
        withArena({ servers: SERVERS, databaseFolder, roundTripMs }, (arena) =>
          runRound({ arena, first: first + 90, scenes: [[fault]], ...common }),
        ),
      );
      if (result) collect(result);
      else console.log("database disk full: SKIPPED, this user may not mount a small disk");
    };
    const shares = shareOut(scenes, isShort ? SHORT_ARENAS : 1).filter((share) => share.length > 0);
    let starting = shares.length;
    const allStarted = Promise.withResolvers<void>();
    const runs = shares.map(async (share, i) => {
      const run = withArena({ servers: SERVERS, roundTripMs }, async (arena) => {
        // Starting an arena takes most of the machine, and the calls of another one would be refused as overloaded.
        if (--starting === 0) allStarted.resolve();
        await allStarted.promise;
        return await runRound({ arena, first: first + i * 40, scenes: share, ...common });
      });
      collect(await run.finally(() => allStarted.resolve()));
      if (i === shares.length - 1) await runFullDisk();
    });
    if (shares.length === 0) runs.push(runFullDisk());
    // An arena that fails does not end the process before the others are stopped.
    for (const run of await Promise.allSettled(runs)) if (run.status === "rejected") throw run.reason;
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
  for (const [rule, of] of groupBy(violations, ({ rule }) => rule)) {
    for (const { text } of of.slice(0, MAX_SHOWN)) console.log(`VIOLATION of ${rule}: ${text}`);
    if (of.length > MAX_SHOWN) console.log(`… and ${of.length - MAX_SHOWN} more of ${rule}`);
  }
}

const arenas = new Set<Arena>();

function stopAllOnSignal(): void {
  void Promise.allSettled([...arenas].map((arena) => arena.stop())).finally(() => process.exit(1));
}

/** Stops everything that was started, even after an error or a signal. */
export async function withArena<Result>(options: ArenaOptions, use: (arena: Arena) => Promise<Result>): Promise<Result> {
  const arena = await Arena.start(options);
  arenas.add(arena);
  if (arenas.size === 1) {
    process.once("SIGINT", stopAllOnSignal);
    process.once("SIGTERM", stopAllOnSignal);
  }
  try {
    return await use(arena);
  } finally {
    arenas.delete(arena);
    if (arenas.size === 0) {
      process.off("SIGINT", stopAllOnSignal);
      process.off("SIGTERM", stopAllOnSignal);
    }
    await arena.stop();
  }
}

/** Every share has every nth scene, so that each has long and short ones. */
function shareOut<Scene>(scenes: readonly Scene[], shares: number): Scene[][] {
  return Array.from({ length: shares }, (_, share) => scenes.filter((_, i) => i % shares === share));
}

/**
 * Every fault alone, and several at once. The latter come first: they may kill servers, whose holds are then released while the
 * others run.
 */
function scenesOf(options: TortureOptions, random: Random): (readonly Fault[])[] {
  const { isShort, only } = options;
  const alone: (readonly Fault[])[] = [...FAULTS, ...(isShort ? [] : [LONG_PAUSE])].map((fault) => [fault]);
  const strong = FAULTS.slice(1);
  const mixed = Array.from({ length: isShort ? 1 : 3 }, () =>
    Array.from({ length: 3 }, () => strong.splice(random.below(strong.length), 1)[0] as Fault),
  );
  const chosen = alone.filter(([fault]) => fault && isChosen(options, fault.name));
  return only === undefined || only === "mixed" ? [...mixed, ...chosen] : chosen;
}

function isChosen({ only }: TortureOptions, name: string): boolean {
  return only === undefined || only.split(",").some((part) => name.includes(part));
}

async function withFullDisk<Result>(use: (fault: Fault, folder: string) => Promise<Result>): Promise<Result | undefined> {
  const disk = await mountSmallDisk();
  if (!disk) return undefined;
  try {
    return await use(fullDisk(disk), disk.path);
  } finally {
    await disk.remove();
  }
}

function commit(): string {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
