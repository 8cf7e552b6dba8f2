import type { CellDirectory } from "../store/driver/cell-directory.ts";
import type { Cell } from "../store/driver/cells.ts";
import { DatabaseMonitor } from "../store/driver/monitor.ts";
import { LedgerPartitions } from "../store/ledger-partitions.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Databases } from "./databases.ts";

/** Maintenance of the database by the process that runs it. */
export type Maintenance = { revive(): Promise<void>; maintain(): Promise<void> };

type HealthOptions = {
  readonly databases: Databases;
  readonly maintenance: Maintenance | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
};

/** Monitors the database, or each cell. A cell that fails affects only the accounts of its lanes. */
export class DatabaseHealth {
  readonly #monitors: readonly DatabaseMonitor[];
  readonly #directory: CellDirectory | undefined;
  readonly #log: Log;

  constructor({ databases, maintenance, log, metrics }: HealthOptions) {
    const { single, monitor, directory } = databases;
    this.#directory = directory;
    this.#log = log;
    this.#monitors = monitor.all.map((pool, cell) => {
      const partitions = new LedgerPartitions(single.all[cell] as Cell);
      const details = directory && { cell: directory.nameOf(cell) };
      return new DatabaseMonitor(pool, {
        onChange: (reachable, error) => {
          if (!reachable) directory?.exclude(cell);
          if (reachable) log.info({ ...details }, "database is reachable again");
          else log.error({ ...details, err: error }, "database is not reachable");
        },
        revive: async () => await maintenance?.revive(),
        maintain: async () => {
          await maintenance?.maintain();
          if (maintenance) await partitions.maintain();
          await directory?.maintain(cell);
        },
        onFailure: (error) => log.error({ ...details, err: error }, "database maintenance failed"),
      });
    });
    metrics.gauge(
      "vx_database_up",
      "1 while the database, or at least one cell, can be reached and written to.",
      () => Number(this.isUp),
      "min",
    );
    const names = directory ? monitor.all.map((_, cell) => directory.nameOf(cell)) : [];
    metrics.gaugesOf(
      "vx_cell_up",
      "1 while the cell can be reached and written to. Only with several cells.",
      "cell",
      () => names.map((name, cell) => [name, Number(directory?.isUsable(cell))]),
      "min",
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

  /** With several cells, resolves when each was tried: those that fail are tried again every second. */
  async openCells(): Promise<void> {
    const directory = this.#directory;
    if (!directory) return;
    await Promise.all(
      this.#monitors.map((_, cell) =>
        directory.maintain(cell).catch((error: unknown) => {
          directory.exclude(cell);
          this.#log.error({ cell: directory.nameOf(cell), err: error }, "the cell cannot be used");
        }),
      ),
    );
    const lanes = directory.unownedLanes;
    if (lanes.length > 0) {
      this.#log.error(
        { first: lanes[0], lanes: lanes.length },
        "lanes without an owner: their calls are refused",
      );
    }
  }

  startMonitors(): void {
    for (const monitor of this.#monitors) monitor.start();
  }

  stop(): void {
    for (const monitor of this.#monitors) monitor.stop();
  }

  /** Calls the listener on every change until the returned function is called. */
  watch(listener: () => void): () => void {
    const unwatch = this.#monitors.map((monitor) => monitor.watch(listener));
    return () => {
      for (const end of unwatch) end();
    };
  }

  /** Calls the listeners when another condition that they depend on has changed. */
  announce(): void {
    this.#monitors[0]?.announce();
  }
}
