import type { FunctionCaller } from "./driver/cells.ts";

/** Partitions are created months ahead, so a failure can wait for the next hour. */
const CHECKS_PER_ATTEMPT = 3_600;

/** Creates the partitions of the ledger of a cell for the next months. */
export class LedgerPartitions {
  readonly #cell: FunctionCaller;
  #checks = 0;

  constructor(cell: FunctionCaller) {
    this.#cell = cell;
  }

  /** Called every second. */
  async maintain(): Promise<void> {
    if (this.#checks++ % CHECKS_PER_ATTEMPT !== 0) return;
    await this.#cell.call("create_ledger_partitions");
  }
}
