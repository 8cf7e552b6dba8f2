import { setTimeout as wait } from "node:timers/promises";
import type { Arena } from "./arena.ts";
import { runAudit } from "./audit.ts";
import { checkEpisode, type Verdict } from "./checker/check.ts";
import { checkDeliveries } from "./checker/deliveries.ts";
import { ofCells, type Violation } from "./checker/facts.ts";
import { checkInvariants } from "./checker/invariants.ts";
import { checkCounters, checkLimitsOfChildren } from "./checker/limit-counters.ts";
import { checkReached } from "./checker/limits.ts";
import { checkHashes, checkMoney, checkUsage } from "./checker/money.ts";
import { checkPayments } from "./checker/payments.ts";
import { checkSecrets } from "./checker/secrets.ts";
import { type Episode, outageMs, recoveryMs, runEpisode } from "./episode.ts";
import type { Fault } from "./faults/fault.ts";
import { settlePurchases } from "./payments.ts";
import { Probe } from "./probe.ts";
import type { TableRow } from "./report.ts";
import { Operator } from "./tenants.ts";

/** 20 s without a heartbeat, a sweep every 2 s, and extra time for two shared cores. */
const GIVEN_BACK_MS = 30_000;

export type RoundOptions = {
  readonly arena: Arena;
  readonly seed: number;
  /** Number of the round's first episode. */
  readonly first: number;
  readonly seconds: number;
  readonly perSecond: number;
  readonly scenes: readonly (readonly Fault[])[];
  readonly say: (line: string) => void;
  /** Time limit for servers to recover and for holds to be released. */
  readonly patienceMs: number;
};

export type RoundResult = { readonly table: readonly TableRow[]; readonly violations: readonly Violation[] };

/** Runs one episode per scene, then the checker after all calls have ended. */
export async function runRound(options: RoundOptions): Promise<RoundResult> {
  const { arena, seed, first, seconds, perSecond, scenes, say, patienceMs } = options;
  const probe = await Probe.create(arena);
  const operator = new Operator(() => `http://127.0.0.1:${arena.servers[0]?.adminPort}`);
  await operator.must("CreateWebhook", { url: arena.endpoint.url("all"), reason: "torture" });
  await probe.areServing(patienceMs);
  const episodes: Episode[] = [];
  /** When a server last failed to generate. */
  const failedAt = new Map<Episode, number>();
  const violations: Violation[] = [];
  for (const [i, faults] of scenes.entries()) {
    const begunAt = performance.now();
    for (const { prepare } of faults) await prepare?.(arena);
    const lasts = Math.max(seconds, ...faults.map(({ lastsSeconds = 0 }) => lastsSeconds + 4));
    const episode = await runEpisode({ arena, seed, number: first + i, seconds: lasts, perSecond, faults });
    await arena.heal();
    if (!(await probe.areServing(patienceMs))) {
      violations.push({ rule: "every server comes back", text: `[${episode.name}] not in ${patienceMs} ms` });
    }
    failedAt.set(episode, probe.lastFailureAt);
    episodes.push(episode);
    say(progressOf(episode, performance.now() - begunAt));
    violations.push(...(await runAudit(arena)));
  }
  if (!(await isAtRest(arena, patienceMs))) {
    violations.push({ rule: "every hold is settled or released", text: `not in ${patienceMs} ms` });
  }
  violations.push(...(await settlePurchases(arena, episodes, patienceMs)));
  violations.push(...(await checkDeliveries(arena, episodes, patienceMs)));
  const table: TableRow[] = [];
  const limited: Verdict["limited"][] = [];
  let corrections = 0;
  for (const episode of episodes) {
    const verdict = await checkEpisode(arena, episode);
    const late = await checkGivenBack(episode, arena.starts);
    const of = [...verdict.violations, ...late].map(({ rule, text }) => ({ rule, text: `[${episode.name}] ${text}` }));
    violations.push(...of);
    corrections += verdict.corrections;
    if (episode.isCalm) limited.push(verdict.limited);
    table.push(await rowOf(episode, verdict, of.length, failedAt.get(episode) ?? 0));
  }
  if (limited.length > 0) violations.push(...checkReached(limited));
  for (const check of [checkMoney, checkHashes, checkUsage, checkCounters, checkLimitsOfChildren]) {
    violations.push(...(await ofCells(arena.owners, check)));
  }
  violations.push(...(await runAudit(arena)));
  const paid = await checkPayments(arena, episodes);
  violations.push(...paid.violations);
  say(`${paid.payments.made} payments, ${paid.payments.reversed} of them reversed; ${corrections} corrections of charges`);
  const tenants = episodes.map((episode) => episode.tenants);
  const entries = episodes.flatMap(({ history }) => history.entries);
  const secrets = await checkSecrets(arena, tenants, entries);
  say(`${secrets.keys} keys looked for in ${secrets.places} places, the files of the database among them`);
  violations.push(...secrets.violations, ...checkInvariants(arena));
  return { table, violations };
}

/**
 * The holds of a dead server must be released in time. The time counts only while the database is reachable
 * and a server that can release them has been alive for long enough.
 */
async function checkGivenBack(episode: Episode, starts: readonly number[]): Promise<Violation[]> {
  const violations: Violation[] = [];
  for (const watch of await Promise.all(episode.givenBack)) {
    const { holds, killedAt, givenBackAt, wasDatabaseAway, judgedSince } = watch;
    const since = Math.max(killedAt, judgedSince, ...starts.filter((at) => at < (givenBackAt ?? 0)));
    if (givenBackAt !== undefined && (wasDatabaseAway || givenBackAt - since <= GIVEN_BACK_MS)) continue;
    const after = givenBackAt === undefined ? "not at all" : `after ${Math.round(givenBackAt - since)} ms`;
    violations.push({ rule: "holds of a dead server are released", text: `${holds} holds, ${after}` });
  }
  return violations;
}

/** Whether no holds are left: those of killed servers are released, and all generations are settled. */
async function isAtRest(arena: Arena, patienceMs: number): Promise<boolean> {
  const until = performance.now() + patienceMs;
  while (performance.now() < until) {
    const holds = await ofCells(arena.owners, (owner) => owner`SELECT 1 FROM holds`);
    if (holds.length === 0) return true;
    await wait(500);
  }
  return false;
}

function progressOf({ name, history }: Episode, tookMs: number): string {
  const calls = String(history.entries.length).padStart(6);
  return `${name.padEnd(50)} ${calls} calls ${(tookMs / 1_000).toFixed(1).padStart(6)} s`;
}

async function rowOf(episode: Episode, verdict: Verdict, violations: number, failedAt: number): Promise<TableRow> {
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
    refused: entries.filter(({ ending, status }) => ending === "answered" && status >= 400 && status < 500).length,
    failed: entries.filter(({ ending, status }) => ending === "answered" && status >= 500).length,
    unreached: entries.filter(({ ending }) => ending === "unreached").length,
    unknown: entries.filter(({ ending }) => ending === "broken" || ending === "silent").length,
    left: entries.filter(({ ending }) => ending === "left").length,
    violations,
    rows: verdict.rows,
    executions: verdict.executions,
    recoveryMs: recoveryMs(episode, failedAt),
    outageMs: outageMs(episode),
    lost: verdict.lost,
    givenBackMs:
      back.length === 0
        ? undefined
        : Math.max(...back.map(({ killedAt, givenBackAt }) => (givenBackAt ?? Number.POSITIVE_INFINITY) - killedAt)),
    orphans: back.reduce((sum, { holds }) => sum + holds, 0),
    afterRevoke: verdict.revocations,
    exactness: verdict.exactness,
    races: verdict.races,
    limited: verdict.limited,
    p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? 0,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
    maxMs: latencies.at(-1) ?? 0,
    moneyChecks: episode.moneyChecks,
    rowChecks: episode.rowChecks,
  };
}
