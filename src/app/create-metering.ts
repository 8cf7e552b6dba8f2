import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import type { CellTurns } from "../database/driver/batcher.ts";
import type { Cell, Cells } from "../database/driver/cells.ts";
import type { DatabaseClock } from "../database/driver/database-clock.ts";
import type { Ids } from "../domain/ids.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import type { Model } from "../domain/model.ts";
import { DepletionReports } from "../events/store.ts";
import { Billing, findAnswer, Settler } from "../generations/billing.ts";
import { type GenerationDeps, RunningGenerations } from "../generations/generation.ts";
import { Meter, type PaidEntry } from "../generations/meter.ts";
import { Presence } from "../generations/presence.ts";
import { RevocationWatch } from "../keys/revocation-watch.ts";
import { usageOfEntry } from "../ledger/store.ts";
import { topUpAfterRefusal } from "../payments/auto-top-up-store.ts";
import { PriceLists } from "../prices/store.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Databases } from "./databases.ts";

const MAX_RUNNING = 8_192;
/** Each running generation waits for at most one statement. */
const MAX_WAITING = 2 * MAX_RUNNING;
/** Other servers release the holds of a server without a heartbeat for 20 s. */
const HEARTBEAT_PAUSE_MS = 2_000;

type MeteringOptions = Pick<GenerationDeps, "streamEvents" | "tokens"> & {
  readonly databases: Databases;
  readonly pipelines: number;
  readonly turns?: CellTurns | undefined;
  readonly models: { get(id: string): Model | undefined; list(): readonly Model[] };
  readonly ids: Ids;
  readonly topUpUrl: string | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
};

/** The billing components of a process that serves calls. */
export type Metering = {
  readonly meter: Meter;
  readonly priceLists: PriceLists;
  /** Call before the first call is served. */
  start(): Promise<void>;
  /** Stops running generations and refuses new ones. */
  stopGenerations(): void;
  /** Resolves when all generations are settled. */
  settle(): Promise<void>;
  stop(): Promise<void>;
};

export function createMetering(options: MeteringOptions): Metering {
  const { databases, metrics } = options;
  // A process id could be reused, and the holds of the earlier process would then seem to belong to a live
  // server.
  const serverId = `srv_${randomUUID()}`;
  const billing = new Billing(databases.billing, {
    serverId,
    clocks: databases.clocks,
    pipelines: options.pipelines,
    turns: options.turns,
    maxWaiting: MAX_WAITING,
    onBatch: metrics.batchSize.observe.bind(metrics.batchSize, ["billing"]),
  });
  const depletions = new DepletionReports(databases.single, () => performance.now());
  const settler = createSettler(billing, options);
  const priceLists = new PriceLists(databases.single);
  const running = new RunningGenerations(MAX_RUNNING);
  const presences: Presence[] = [];
  const watches: RevocationWatch[] = [];
  let isStarted = false;
  const appendCell = (cell: number) => {
    const presence = createPresence(cell, { options, serverId, billing });
    presences.push(presence);
    const watch = new RevocationWatch(databases.monitor.all[cell] as Cell, {
      now: () => performance.now(),
      isNeeded: () => running.hasAny((accountId) => mayOwn(databases.monitor, cell, laneOfId(accountId))),
      onWithdrawn: (reasons) => running.stopStreams(reasons),
    });
    watches.push(watch);
    if (!isStarted) return;
    // A failure is logged; the next heartbeat follows.
    void presence.start().catch(() => undefined);
    watch.start();
  };
  for (const cell of databases.monitor.all.keys()) appendCell(cell);
  databases.waiting?.onUse(appendCell);
  metrics.gauge("vx_billing_queue_depth", "Holds and settlements that wait for the next batch.", () => billing.depth);
  metrics.gauge("vx_running_generations", "Generations that run or are being settled.", () => running.count);
  return {
    meter: new Meter({
      ...options,
      billing,
      settler,
      running,
      priceLists,
      reportDepleted: (...of) => depletions.report(...of),
      topUpAfterRefusal: (accountId) => topUpAfterRefusal(databases.single, accountId),
      quoteHold: (hold) => billing.quoteHold(hold),
      findAnswer: (...of) => findAnswer(databases.single, ...of),
      findEntry: (...of) => findEntry(billing, ...of),
    }),
    priceLists,
    start: async () => {
      isStarted = true;
      const started = await Promise.allSettled(presences.map((presence) => presence.start()));
      // A cell that cannot be reached fails only its own accounts.
      const [first] = started;
      if (first?.status === "rejected" && started.length === 1) throw first.reason;
      for (const watch of watches) watch.start();
    },
    stopGenerations: () => {
      running.stopAll();
      settler.limitRetries();
    },
    settle: () => running.whenIdle(),
    stop: async () => {
      isStarted = false;
      for (const watch of watches) watch.stop();
      await Promise.all(presences.map((presence) => presence.stop()));
    },
  };
}

function createSettler(billing: Billing, { log, metrics }: MeteringOptions): Settler {
  return new Settler({
    billing,
    now: () => performance.now(),
    wait: (ms) => wait(ms),
    onRetry: (end, error) => {
      metrics.settlementRetries.inc();
      log.warn({ err: error, generation: end.generationId }, "settlement failed, retrying");
    },
    onRefusal: (end, error) => {
      metrics.refusedSettlements.inc();
      log.error(
        { err: error, generation: end.generationId, charge_micros: String(end.charge?.amountMicros ?? 0n) },
        "released a hold without a charge: the database refused writes for 10 s",
      );
    },
    onFailure: (end, error) => {
      metrics.unsettled.inc();
      log.error(
        { err: error, generation: end.generationId, charge_micros: String(end.charge?.amountMicros ?? 0n) },
        "stopped before a generation was settled; its hold will be released without a charge",
      );
    },
  });
}

/** While a lane moves and has no owner, each cell may have its latest revocation. */
function mayOwn(cells: Cells, cell: number, lane: Lane): boolean {
  return !cells.all.some((_, other) => other !== cell && cells.owns(other, lane));
}

type PresenceOptions = {
  readonly options: MeteringOptions;
  readonly serverId: string;
  readonly billing: Billing;
};

function createPresence(cell: number, { options, serverId, billing }: PresenceOptions): Presence {
  const { databases, log, metrics } = options;
  return new Presence(databases.single.all[cell] as Cell, {
    serverId,
    clock: databases.clocks[cell] as DatabaseClock,
    pauseMs: HEARTBEAT_PAUSE_MS,
    heartbeats: databases.monitor.all[cell] as Cell,
    cells: () => databases.waiting?.usableNames ?? [],
    isOpen: (generationId) => billing.isOpen(generationId),
    release: (hold) => billing.end({ ...hold, charge: undefined }),
    onReleased: (holds) => {
      metrics.releasedHolds.inc(holds);
      log.warn({ holds }, "released abandoned holds");
    },
    onFailure: (what, error) => log.error({ err: error, cell: databases.directory?.nameOf(cell) }, `${what} failed`),
  });
}

async function findEntry(billing: Billing, accountId: string, id: string): Promise<PaidEntry | undefined> {
  const row = await billing.findEntry(accountId, id);
  if (!row) return undefined;
  return {
    model: row.model,
    usage: usageOfEntry(row),
    costMicros: -row.amount_micros,
    balanceMicros: row.balance_after_micros,
  };
}
