import { expireGrants, FiguresUpkeep } from "../accounts/store.ts";
import type { CellDirectory } from "../database/cells/cell-directory.ts";
import { migrateCell } from "../database/cells/migrate-cell.ts";
import type { Cell } from "../database/driver/cells.ts";
import type { DatabaseClock } from "../database/driver/database-clock.ts";
import { DatabaseMonitor } from "../database/driver/monitor.ts";
import { EventUpkeep } from "../events/store.ts";
import { FailureUpkeep } from "../failures/store.ts";
import { LedgerPartitions } from "../ledger/store.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Databases } from "./databases.ts";
import type { Config } from "./settings/config.ts";

/** From this difference on, the log has a warning. */
const MAX_CLOCK_OFFSET_MS = 1_000;

/** Maintenance of the database by the process that runs it. */
export type Maintenance = { revive(): Promise<void>; maintain(): Promise<void> };

type HealthOptions = {
  readonly databases: Databases;
  readonly maintenance: Maintenance | undefined;
  readonly config: Pick<Config, "eventsDays" | "failuresDays">;
  readonly log: Log;
  readonly metrics: Metrics;
};

/** Monitors the database, or each cell. A cell that fails affects only the accounts of its lanes. */
export class DatabaseHealth {
  readonly #monitors: DatabaseMonitor[];
  readonly #databases: Databases;
  readonly #directory: CellDirectory | undefined;
  readonly #maintenance: Maintenance | undefined;
  readonly #config: HealthOptions["config"];
  readonly #log: Log;
  readonly #entriesWithoutPartition: number[] = [];
  readonly #cellsWithOffset = new Set<number>();
  readonly #listeners = new Set<() => void>();
  #isStarted = false;

  constructor({ databases, maintenance, config, log, metrics }: HealthOptions) {
    const { monitor, directory, waiting } = databases;
    this.#databases = databases;
    this.#directory = directory;
    this.#maintenance = maintenance;
    this.#config = config;
    this.#log = log;
    this.#monitors = monitor.all.map((_, cell) => this.#createMonitor(cell));
    waiting?.onUse((cell) => this.#append(cell));
    metrics.gauge(
      "vx_database_up",
      "1 while the database, or at least one cell, can be reached and written to.",
      () => Number(this.isUp),
      "min",
    );
    metrics.gaugesOf(
      "vx_cell_up",
      "1 while the cell can be reached and written to. Only with several cells.",
      "cell",
      () => (directory ? [...monitor.all.keys()].map((cell) => [directory.nameOf(cell), Number(directory.isUsable(cell))]) : []),
      "min",
    );
    metrics.gaugesOf(
      "vx_clock_offset_seconds",
      "Clock of this machine minus that of the database.",
      "cell",
      () =>
        this.#monitors.flatMap((_, cell): [string, number][] => {
          const offsetMs = this.#clockOffsetMs(cell);
          return offsetMs === undefined ? [] : [[directory?.nameOf(cell) ?? "", offsetMs / 1_000]];
        }),
      "max",
    );
    metrics.gauge("vx_ledger_entries_without_partition", "Ledger entries in the default partition whose month has none.", () =>
      this.#entriesWithoutPartition.reduce((sum, entries) => sum + entries, 0),
    );
  }

  /** Whether at least one cell can take calls. */
  get isUp(): boolean {
    const directory = this.#directory;
    return this.#monitors.some(({ reachable }, cell) => reachable && (directory?.isUsable(cell) ?? true));
  }

  /** The cells that cannot take calls; empty with one cell. */
  get failedCells(): readonly string[] {
    return this.#directory?.excluded ?? [];
  }

  /**
   * Measures the clock of the database, which ids need. With several cells, resolves when each was tried: those that fail are
   * tried again every second.
   */
  async openCells(): Promise<void> {
    const directory = this.#directory;
    if (!directory) return await this.#monitors[0]?.probe();
    const open = async (cell: number) => {
      try {
        await directory.maintain(cell);
        await this.#monitors[cell]?.probe();
      } catch (error) {
        directory.exclude(cell);
        this.#log.error({ cell: directory.nameOf(cell), err: error }, "the cell cannot be used");
      }
    };
    const used = [...this.#monitors.keys()];
    await Promise.all(used.map(open));
    await this.#tryWaitingCells();
    if (directory.unownedLanes.length > 0) this.#databases.waiting?.useAll();
    await Promise.all([...this.#monitors.keys()].slice(used.length).map(open));
    const lanes = directory.unownedLanes;
    if (lanes.length > 0) {
      this.#log.error({ first: lanes[0], lanes: lanes.length }, "refusing calls of lanes without an owner");
    }
  }

  startMonitors(): void {
    this.#isStarted = true;
    for (const monitor of this.#monitors) monitor.start();
    this.#databases.waiting?.startProbes();
  }

  stop(): void {
    this.#isStarted = false;
    for (const monitor of this.#monitors) monitor.stop();
    this.#databases.waiting?.stopProbes();
  }

  /** Calls the listener on every change until the returned function is called. */
  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the listeners when another condition that they depend on has changed. */
  announce(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Lists of all accounts leave out cells that cannot be reached, while other cells own all lanes. */
  async #tryWaitingCells(): Promise<void> {
    const { waiting } = this.#databases;
    if (!waiting) return;
    await Promise.all(
      waiting.waiting.map(async (cell) => {
        try {
          await migrateCell(cell, waiting.known);
          waiting.use(cell);
        } catch (error) {
          this.#log.warn({ cell: cell.name, err: error }, "the cell is not used yet");
        }
      }),
    );
  }

  #append(cell: number): void {
    const monitor = this.#createMonitor(cell);
    this.#monitors.push(monitor);
    if (this.#isStarted) monitor.start();
  }

  #createMonitor(cell: number): DatabaseMonitor {
    const { single, monitor: pools, clocks } = this.#databases;
    const [directory, maintenance, log] = [this.#directory, this.#maintenance, this.#log];
    const details = directory && { cell: directory.nameOf(cell) };
    const partitions = new LedgerPartitions(single.all[cell] as Cell, (months) => {
      const entries = months.reduce((sum, month) => sum + month.entries, 0);
      this.#entriesWithoutPartition[cell] = entries;
      if (entries > 0) log.error({ ...details, months }, "entries of the ledger have no partition, run vx migrate");
    });
    const events = new EventUpkeep(single.all[cell] as Cell, this.#config.eventsDays);
    const failures = new FailureUpkeep(single.all[cell] as Cell, this.#config.failuresDays);
    const figures = new FiguresUpkeep(single.all[cell] as Cell);
    return new DatabaseMonitor(pools.all[cell] as Cell, {
      clock: clocks[cell] as DatabaseClock,
      prepare: async () => await directory?.prepare(cell),
      onChange: (reachable, error) => {
        if (reachable) log.info({ ...details }, "database is reachable again");
        else log.error({ ...details, err: error }, "database is not reachable");
        this.announce();
      },
      revive: async () => {
        directory?.exclude(cell);
        await maintenance?.revive();
      },
      maintain: async () => {
        this.#compareClocks(cell, details);
        // First: it fails in the copy of another cell, which has the lanes and accounts of that cell until it claims its own.
        await directory?.maintain(cell);
        await maintenance?.maintain();
        if (maintenance) {
          await partitions.maintain();
          await events.maintain();
          await failures.maintain();
          await expireGrants(single.all[cell] as Cell);
          await figures.maintain();
        }
      },
      onFailure: (error) => log.error({ ...details, err: error }, "database maintenance failed"),
    });
  }

  /** Undefined before the clock of the database was measured. */
  #clockOffsetMs(cell: number): number | undefined {
    const timeMs = this.#databases.clocks[cell]?.timeMs;
    return timeMs === undefined ? undefined : Date.now() - timeMs;
  }

  /** Logs when the difference begins or ends. */
  #compareClocks(cell: number, details: object | undefined): void {
    const offsetMs = this.#clockOffsetMs(cell) ?? 0;
    const uncertaintyMs = this.#databases.clocks[cell]?.uncertaintyMs ?? 0;
    const had = this.#cellsWithOffset.has(cell);
    const fields = { ...details, offset_ms: offsetMs };
    if (!had && Math.abs(offsetMs) - uncertaintyMs > MAX_CLOCK_OFFSET_MS) {
      this.#cellsWithOffset.add(cell);
      this.#log.warn(fields, "the clock of this machine is not that of the database");
    }
    if (had && Math.abs(offsetMs) + uncertaintyMs < MAX_CLOCK_OFFSET_MS) {
      this.#cellsWithOffset.delete(cell);
      this.#log.info(fields, "the clock of this machine is that of the database again");
    }
  }
}
