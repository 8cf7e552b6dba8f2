import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { Random } from "../fuzz/random.ts";
import { Arena } from "./arena.ts";
import { runAudit } from "./audit.ts";
import { checkEpisode, type Verdict } from "./checker/check.ts";
import type { Violation } from "./checker/facts.ts";
import { checkHashes, checkMoney } from "./checker/money.ts";
import { checkSecrets } from "./checker/secrets.ts";
import { type Episode, recoveryMs, runEpisode } from "./episode.ts";
import type { Fault } from "./faults/fault.ts";
import { FAULTS, LONG_PAUSE } from "./faults/faults.ts";
import { printTable, type TableRow } from "./report.ts";
import { createPlans, Operator } from "./tenants.ts";

export type TortureOptions = {
  readonly seed: number;
  readonly rounds: number;
  readonly isShort: boolean;
  readonly only: string | undefined;
};

const SERVERS = 2;
const MAX_SHOWN = 20;
const REST_MS = 100_000;

/** Runs all faults, each alone and then mixed, and prints what became of the invariants. Returns the exit code. */
export async function runTorture(options: TortureOptions): Promise<number> {
  const startedAt = performance.now();
  console.log(`seed ${options.seed}, commit ${commit()}`);
  console.log(
    `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.versions.node}, ${SERVERS} servers, fsync on\n`,
  );
  const table: TableRow[] = [];
  const violations: Violation[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const result = await runRound(options, round);
    table.push(...result.table);
    violations.push(...result.violations);
  }
  console.log();
  printTable(table);
  for (const { rule, text } of violations.slice(0, MAX_SHOWN)) console.log(`VIOLATION of ${rule}: ${text}`);
  if (violations.length > MAX_SHOWN) console.log(`… and ${violations.length - MAX_SHOWN} more`);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`\n${violations.length} violations in ${seconds} s (seed ${options.seed})`);
  return violations.length === 0 ? 0 : 1;
}

/** One arena, every fault in it once, and the checker when all has come to rest. */
async function runRound(options: TortureOptions, round: number) {
  const { isShort, seed, only } = options;
  const [seconds, perSecond] = isShort ? [6, 100] : [12, 120];
  const arena = await Arena.start({ servers: SERVERS });
  const stopOnSignal = () => void arena.stop().finally(() => process.exit(1));
  process.once("SIGINT", stopOnSignal);
  process.once("SIGTERM", stopOnSignal);
  try {
    await createPlans(new Operator(() => `http://127.0.0.1:${arena.servers[0]?.adminPort}`));
    const episodes: Episode[] = [];
    const violations: Violation[] = [];
    for (const [i, faults] of scenes(isShort, new Random(seed + round), only).entries()) {
      const number = round * 100 + i + 1;
      const lasting = Math.max(seconds, faults.some(({ name }) => name === LONG_PAUSE.name) ? 30 : 0);
      const episode = await runEpisode({ arena, seed, number, seconds: lasting, perSecond, faults });
      await arena.heal();
      episodes.push(episode);
      console.log(progressOf(episode));
      violations.push(...(await runAudit(arena)));
    }
    await rest(arena);
    const table: TableRow[] = [];
    for (const episode of episodes) {
      const verdict = await checkEpisode(arena, episode);
      violations.push(
        ...verdict.violations.map(({ rule, text }) => ({ rule, text: `[${episode.name}] ${text}` })),
      );
      table.push(await rowOf(episode, verdict));
    }
    violations.push(
      ...(await checkMoney(arena.database.owner)),
      ...(await checkHashes(arena.database.owner)),
    );
    violations.push(...(await runAudit(arena)));
    const secrets = await checkSecrets(
      arena,
      episodes.map(({ tenants }) => tenants),
      episodes.flatMap(({ history }) => history.entries),
    );
    console.log(
      `${secrets.keys} keys looked for in ${secrets.places} places, the files of the database among them`,
    );
    violations.push(...secrets.violations);
    return { table, violations };
  } finally {
    process.off("SIGINT", stopOnSignal);
    process.off("SIGTERM", stopOnSignal);
    await arena.stop();
  }
}

/** Every fault alone, then some at once. */
function scenes(isShort: boolean, random: Random, only: string | undefined): (readonly Fault[])[] {
  const alone: (readonly Fault[])[] = [...FAULTS, ...(isShort ? [] : [LONG_PAUSE])].map((fault) => [fault]);
  if (only !== undefined) return alone.filter(([fault]) => fault?.name.includes(only));
  const strong = FAULTS.slice(1);
  const mixed = Array.from({ length: isShort ? 1 : 3 }, () =>
    Array.from({ length: 3 }, () => strong.splice(random.below(strong.length), 1)[0] as Fault),
  );
  return [...alone, ...mixed];
}

/** Until nobody holds anything: what killed servers left is given back, what runs is settled. */
async function rest(arena: Arena): Promise<void> {
  const until = performance.now() + REST_MS;
  while (performance.now() < until) {
    const [row] = await arena.database.owner<
      { count: number }[]
    >`SELECT count(*)::integer AS count FROM vx.holds`;
    if (row?.count === 0) return;
    await wait(500);
  }
}

function progressOf({ name, history }: Episode): string {
  return `${name.padEnd(60)} ${String(history.entries.length).padStart(6)} calls`;
}

async function rowOf(episode: Episode, verdict: Verdict): Promise<TableRow> {
  const { entries, dropped, late } = episode.history;
  const latencies = entries
    .filter(({ ending, status, reply }) => ending === "answered" && status === 200 && !reply)
    .map(({ endedAt, plannedAt }) => endedAt - plannedAt)
    .sort((a, b) => a - b);
  const back = await Promise.all(episode.givenBack);
  return {
    fault: episode.name,
    calls: entries.length,
    dropped,
    late,
    ok: entries.filter(({ ending, status }) => ending === "answered" && status === 200).length,
    refused: entries.filter(({ ending, status }) => ending === "answered" && status >= 400 && status < 500)
      .length,
    failed: entries.filter(({ ending, status }) => ending === "answered" && status >= 500).length,
    unknown: entries.filter(
      ({ ending }) => ending === "broken" || ending === "silent" || ending === "unreached",
    ).length,
    left: entries.filter(({ ending }) => ending === "left").length,
    violations: verdict.violations.length,
    rows: verdict.rows,
    executions: verdict.executions,
    recoveryMs: recoveryMs(episode),
    givenBackMs:
      back.length === 0
        ? undefined
        : Math.max(...back.map(({ afterMs }) => afterMs ?? Number.POSITIVE_INFINITY)),
    orphans: back.reduce((sum, { holds }) => sum + holds, 0),
    afterRevoke: verdict.revocations,
    exactness: verdict.exactness,
    races: verdict.races,
    p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? 0,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
    maxMs: latencies.at(-1) ?? 0,
    moneyChecks: episode.moneyChecks,
    rowChecks: episode.rowChecks,
  };
}

function commit(): string {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], { encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
