import { setTimeout as wait } from "node:timers/promises";
import { type Lane, laneRanges } from "../../domain/lane.ts";
import { Session } from "../driver/connection.ts";
import { type DatabaseAddress, endpointsOf } from "../driver/endpoints.ts";
import type { CellToMigrate } from "./migrate-cell.ts";
import { SplitSource } from "./split-source.ts";
import { SplitStandby, startTimeOf } from "./split-standby.ts";
import { type Split, SplitError } from "./split-state.ts";

/** The steps, in their order. Until "confirmed" the source can take the lanes back. */
export const SPLIT_STEPS = ["begun", "ready", "released", "confirmed", "promoted", "claimed", "finished"] as const;
export type SplitStep = (typeof SPLIT_STEPS)[number];

export type SplitOptions = {
  readonly source: CellToMigrate;
  /** All cells of the file; one of them is on the standby. */
  readonly cells: readonly CellToMigrate[];
  readonly standby: DatabaseAddress;
  readonly lanes: readonly Lane[];
  readonly newId: () => string;
  /** The next step waits for it. */
  readonly onStep: (step: SplitStep) => void | Promise<void>;
  /** Called while the standby or the servers are not ready. */
  readonly onWait: (reason: string) => void;
};

export type SplitResult = {
  readonly target: string;
  readonly lanes: readonly Lane[];
  /** The time from before the lanes were released until they were claimed; undefined if an earlier command released them. */
  readonly unownedMs: number | undefined;
  /** A replication slot of the source that keeps write-ahead log for the standby. */
  readonly slot: string | undefined;
};

const READY_MS = 60_000;
const READY_PAUSE_MS = 250;
/** What the standby replays, and what runs at the source, may take this long when the lanes are released. */
const QUIET_MS = 300;
/** Calls to the lanes wait meanwhile. If it takes longer, the source takes the lanes back. */
const MAX_RELEASED_MS = 1_200;
const CONFIRM_MS = 60_000;

/**
 * Moves lanes from a cell to its standby, which becomes a cell. Each step is a committed transaction, so the next call
 * continues after the last one. The two cells never own a lane at the same time: the source gives up the lanes, everything that
 * it wrote reaches the standby, and only then the source confirms that it will not take them back, and the standby claims them.
 */
export async function splitCell(options: SplitOptions): Promise<SplitResult> {
  const { source: cell, lanes, onStep } = options;
  if (cell.engine !== "postgresql") {
    throw new SplitError(`the cell "${cell.name}" is on Citus, which has no standby with a copy of it alone`);
  }
  const source = await SplitSource.open(cell.address, cell.schema);
  try {
    await source.requireMonitoring();
    const standby = await SplitStandby.open(options.standby, cell.schema);
    try {
      await standby.requireMonitoring();
      const target = await findTarget(options, standby);
      const split = await findOrBegin(options, target, source, standby);
      const { id } = split;
      let { state } = split;
      await onStep("begun");
      const slot = (await standby.receiver()).slot;
      let releasedAt: number | undefined;
      if (state === "begun") {
        await untilReady(options, target, source, standby, split);
        await onStep("ready");
        releasedAt = performance.now();
        await source.release(id);
        state = "released";
      }
      if (state === "released") {
        await onStep("released");
        await handOver(source, standby, id);
      }
      await onStep("confirmed");
      await requireConfirmation(source, id);
      await promote(standby, id);
      await onStep("promoted");
      await requireConfirmation(source, id);
      // An earlier command may have done this.
      if (!(await hasState(standby, id, "finished"))) await standby.claim(id);
      const unownedMs = releasedAt === undefined ? undefined : performance.now() - releasedAt;
      await onStep("claimed");
      if (!(await hasState(source, id, "finished"))) await source.setState(id, "confirmed", "finished");
      await onStep("finished");
      return { target, lanes, unownedMs, slot };
    } finally {
      await standby.close();
    }
  } finally {
    await source.close();
  }
}

/** The cell of the file whose database is the standby. No other may be on that server, or servers would use it as that one. */
async function findTarget({ source, cells }: SplitOptions, standby: SplitStandby): Promise<string> {
  const startTime = await standby.startTime();
  const found: string[] = [];
  for (const cell of cells) {
    for (const endpoint of endpointsOf(cell.address)) {
      const at = await Session.connect(endpoint, { statementTimeoutMs: 5_000, name: "vx cells split" })
        .then(async (session) => await startTimeOf(session).finally(() => session.close()))
        .catch(() => undefined);
      if (at === startTime) found.push(cell.name);
    }
  }
  const [target, ...others] = [...new Set(found)];
  if (target === undefined)
    throw new SplitError("no cell of VX_CELLS is on the standby; add one, without lanes, there and for all servers");
  if (target === source.name || others.length > 0)
    throw new SplitError(`the standby is among the hosts of the cells ${found.join(", ")}; only the new cell may name it`);
  if (cells.find(({ name }) => name === target)?.schema !== source.schema)
    throw new SplitError(`the cell "${target}" must have the schema of the cell "${source.name}", "${source.schema}"`);
  return target;
}

/** The split to continue: the one that an earlier command left, or a new one. */
async function findOrBegin(options: SplitOptions, target: string, source: SplitSource, standby: SplitStandby): Promise<Split> {
  const { lanes, newId } = options;
  const last = await source.lastSplit();
  if (last?.state === "released" || last?.state === "confirmed") {
    if (last.target === target && sameLanes(last.lanes, lanes)) return last;
    throw new SplitError(
      `the split of the lanes ${laneRanges(last.lanes)} to the cell "${last.target}" is not finished; run its command again, or undo it with --abort`,
    );
  }
  if (!(await standby.isInRecovery())) throw new SplitError("the server is not a standby");
  const problem = await standby.problem();
  if (problem !== undefined) throw new SplitError(`the standby ${problem}`);
  if (await source.isSynchronous((await standby.receiver()).name)) {
    throw new SplitError("commits of the source wait for this standby; take it out of synchronous_standby_names there first");
  }
  const name = options.source.name;
  const strangers = await source.serversWithout(name);
  if (strangers.length > 0)
    throw new SplitError(
      `the cells.yaml of the servers ${strangers.join(", ")} has no cell "${name}"; all servers must use one name for a cell`,
    );
  const owned = await source.ownedLanes();
  const missing = lanes.find((lane) => !owned.has(lane));
  if (missing !== undefined) throw new SplitError(`the cell "${name}" does not own lane ${missing}`);
  if (owned.size === lanes.length) throw new SplitError(`the cell "${name}" must keep a lane`);
  // It has changed nothing, and its checks are old.
  if (last?.state === "begun") await source.setState(last.id, "begun", "returned");
  const id = newId();
  await source.begin(id, name, target, lanes);
  return { id, target, lanes, state: "begun", changedAt: new Date(0) };
}

function sameLanes(one: readonly Lane[], other: readonly Lane[]): boolean {
  const known = new Set(one);
  return known.size === other.length && other.every((lane) => known.has(lane));
}

/** Waits until the standby follows closely, nothing long runs at the source, and all its servers know the target. */
async function untilReady(
  { onWait }: SplitOptions,
  target: string,
  source: SplitSource,
  standby: SplitStandby,
  { id }: Split,
): Promise<void> {
  const until = performance.now() + READY_MS;
  for (;;) {
    const reason = await reasonToWait(target, source, standby, id);
    if (reason === undefined) return;
    if (performance.now() > until) throw new SplitError(`${reason}; nothing was moved`);
    onWait(reason);
    await wait(READY_PAUSE_MS);
  }
}

async function reasonToWait(target: string, source: SplitSource, standby: SplitStandby, id: string): Promise<string | undefined> {
  const servers = await source.serversWithout(target);
  if (servers.length > 0)
    return `the servers ${servers.join(", ")} cannot use the cell "${target}": add it to their cells.yaml, send them SIGHUP, and check that they reach it`;
  if (!(await followsWithin(() => QUIET_MS, source, standby, id)))
    return `the standby replays changes of the source more than ${QUIET_MS} ms late`;
  const behind = await standbysBehindAfter(QUIET_MS, await source.position(), source);
  if (behind.length > 0) return `the standbys ${behind.join(", ")} of the source receive changes more than ${QUIET_MS} ms late`;
  if (!(await haveEnded(await source.transactions(), source, QUIET_MS)))
    return "a transaction at the source uses the table of lanes for long, such as pg_dump";
  return undefined;
}

/**
 * Everything that the source writes about the lanes reaches the standby; then only the standby may claim them. The
 * other standbys get the release first, so one that replaces the source in a failover does not own the lanes either.
 */
async function handOver(source: SplitSource, standby: SplitStandby, id: string): Promise<void> {
  const replayed = (await standby.findSplit(id))?.state;
  if (replayed === "confirmed" || replayed === "finished") {
    // The source lost its confirmation in a failover. Taking the lanes back would give them two owners.
    await source.setState(id, "released", "confirmed");
    return;
  }
  const until = performance.now() + MAX_RELEASED_MS;
  const left = () => Math.max(0, until - performance.now());
  try {
    if (!(await haveEnded(await source.transactions(), source, left())))
      throw new SplitError("a transaction at the source did not end in time");
    const behind = await standbysBehindAfter(left(), await source.position(), source);
    if (behind.length > 0)
      throw new SplitError(`the standbys ${behind.join(", ")} of the source did not receive the release in time`);
    // Replaying the release is not enough: after a failover, the standby must follow the new source.
    if (!(await followsWithin(left, source, standby, id)))
      throw new SplitError("the standby did not replay the change of the owner in time");
  } catch (error) {
    await source.takeBack(id);
    throw new SplitError(`${(error as Error).message}; the source owns the lanes again`);
  }
  // From here on, the lanes belong to the standby, however long it takes.
  await source.setState(id, "released", "confirmed");
}

/** Whether the standby replays, within this time, what the source writes now and everything before it. */
async function followsWithin(ms: () => number, source: SplitSource, standby: SplitStandby, id: string): Promise<boolean> {
  const touchedAt = await source.touch(id);
  return await isTrueWithin(ms(), async () => {
    // Equal, not later: after a failover, the source's clock may be behind the times that the standby has.
    const split = await standby.findSplit(id);
    return split?.changedAt.getTime() === touchedAt.getTime();
  });
}

/** A standby that replaced the source in a failover may not have the confirmation. Then its state decides how to continue. */
async function requireConfirmation(source: SplitSource, id: string): Promise<void> {
  const state = (await source.findSplit(id))?.state;
  if (state !== "confirmed" && state !== "finished")
    throw new SplitError(
      `the source has lost its confirmation of the split, as after a failover (state: ${state ?? "none"}); nothing was claimed; run the command again`,
    );
}

async function promote(standby: SplitStandby, id: string): Promise<void> {
  if (!(await standby.isInRecovery())) return;
  if (!(await isTrueWithin(CONFIRM_MS, async () => await hasState(standby, id, "confirmed"))))
    throw new SplitError("the standby does not follow the source; attach it again, then run the command again");
  // It may have replaced the standby that was checked when the split began.
  const problem = await standby.promotionProblem();
  if (problem !== undefined) throw new SplitError(`the standby ${problem}`);
  await standby.promote();
}

async function hasState(at: Pick<SplitSource, "findSplit">, id: string, state: Split["state"]): Promise<boolean> {
  return (await at.findSplit(id))?.state === state;
}

const POLL_MS = 5;

/** The standbys of the source that are still behind the position when the time is over. */
async function standbysBehindAfter(withinMs: number, position: string, source: SplitSource): Promise<readonly string[]> {
  let behind: readonly string[] = [];
  await isTrueWithin(withinMs, async () => {
    behind = await source.standbysBehind(position);
    return behind.length === 0;
  });
  return behind;
}

/** Transactions that begin later see the current owners. */
async function haveEnded(transactions: ReadonlySet<string>, source: SplitSource, withinMs: number): Promise<boolean> {
  let running = transactions;
  return await isTrueWithin(withinMs, async () => {
    const current = await source.transactions();
    running = new Set([...running].filter((id) => current.has(id)));
    return running.size === 0;
  });
}

async function isTrueWithin(ms: number, check: () => Promise<boolean>): Promise<boolean> {
  const until = performance.now() + ms;
  for (;;) {
    if (await check()) return true;
    if (performance.now() > until) return false;
    await wait(POLL_MS);
  }
}

/**
 * Undoes the unfinished split of a cell without its standby, which may be lost. Returns the lanes that the cell owns
 * again. The standby can never claim them afterwards, because the source no longer confirms the split.
 */
export async function abortSplit({ name, address, schema }: CellToMigrate): Promise<readonly Lane[]> {
  const source = await SplitSource.open(address, schema);
  try {
    const split = await source.lastSplit();
    switch (split?.state) {
      case "begun":
        await source.setState(split.id, "begun", "returned");
        return split.lanes;
      case "released":
        await source.abort(split.id);
        return split.lanes;
      case "confirmed":
        throw new SplitError(
          `the source has confirmed the split, and the cell "${split.target}" may own the lanes; run the command of the split again to finish it`,
        );
      default:
        throw new SplitError(`the cell "${name}" has no unfinished split`);
    }
  } finally {
    await source.close();
  }
}
