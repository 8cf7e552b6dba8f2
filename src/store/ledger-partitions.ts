import type { Cells } from "./driver/cells.ts";

/** Partitions are created months ahead, so a failure can wait for the next hour. */
const CHECKS_PER_ATTEMPT = 3_600;

/** Creates the partitions of the ledger for the next months. */
export class LedgerPartitions {
  readonly #database: Cells;
  #checks = 0;

  constructor(database: Cells) {
    this.#database = database;
  }

  /** Called every second. */
  async maintain(): Promise<void> {
    if (this.#checks++ % CHECKS_PER_ATTEMPT !== 0) return;
    await Promise.all(this.#database.all.map((cell) => cell.call("create_ledger_partitions")));
  }
}
