import type { Arena } from "../arena.ts";
import type { Episode } from "../episode.ts";
import { checkAdmissions, type Exactness } from "./admissions.ts";
import { checkCharges } from "./charges.ts";
import { checkCorrections } from "./corrections.ts";
import { checkCosts } from "./costs.ts";
import { checkExpiry } from "./expiry.ts";
import { countActiveKeys, groupBy, readKeyStates, readRows, type Violation } from "./facts.ts";
import { checkIsolation } from "./isolation.ts";
import { checkLimitRefusals } from "./limits.ts";
import { type LostCommits, withoutLostCommits } from "./lost-commits.ts";
import { checkRaces, type Races } from "./races.ts";
import { checkRepeats } from "./repeats.ts";
import { checkRevocations, type Revocations } from "./revocations.ts";

export type Verdict = {
  readonly violations: readonly Violation[];
  readonly exactness: Exactness;
  readonly revocations: Revocations;
  readonly races: Races;
  /** The number of calls that limits refused, by metric. */
  readonly limited: ReadonlyMap<string, number>;
  readonly lost: LostCommits;
  readonly rows: number;
  readonly corrections: number;
  readonly executions: number;
};

/** Checks an episode against the invariants, after all of its calls have ended. */
export async function checkEpisode(arena: Arena, episode: Episode): Promise<Verdict> {
  const { tenants, history } = episode;
  const ops = new Set(history.entries.map(({ op }) => op));
  const executions = arena.upstream.executions.filter(({ op }) => ops.has(op));
  const rows = await readRows(arena.owners, tenants.accountIds);
  const { facts, lost } = withoutLostCommits({
    episode: episode.name,
    tenants,
    entries: history.entries,
    executions: groupBy(executions, ({ op }) => op),
    rows,
    rowsByRequest: groupBy(
      rows.filter(({ kind }) => kind === "generation"),
      ({ requestId }) => requestId,
    ),
    prices: arena.prices,
    activeKeys: await countActiveKeys(arena.owners, tenants.keys.get("capped")?.accountId ?? ""),
    fundedMicros: tenants.fundedMicros,
    isCalm: episode.isCalm,
    losesServers: episode.losesServers,
    faultWindows: episode.faultWindows,
    keyStates: await readKeyStates(arena.owners, tenants.accountIds),
    databaseKills: episode.databaseKills,
    lostCommits: episode.lostCommits,
    splitBrain: episode.splitBrain,
    failedLanes: episode.failedLanes,
    hasClockSteps: episode.hasClockSteps,
  });
  const admissions = checkAdmissions(facts);
  const revocations = checkRevocations(facts);
  const races = checkRaces(facts);
  const limits = checkLimitRefusals(facts);
  return {
    violations: [
      ...episode.violations,
      ...checkCharges(facts),
      ...checkIsolation(facts),
      ...checkRepeats(facts),
      ...checkCorrections(facts),
      ...checkExpiry(facts),
      ...checkCosts(facts),
      ...admissions.violations,
      ...revocations.violations,
      ...races.violations,
      ...limits.violations,
    ],
    exactness: admissions.exactness,
    revocations: revocations.figures,
    races: races.figures,
    limited: limits.refused,
    lost,
    rows: facts.rows.filter(({ kind }) => kind === "generation").length,
    corrections: facts.rows.filter(({ adjustedId }) => adjustedId !== "").length,
    executions: executions.length,
  };
}
