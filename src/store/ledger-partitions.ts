import { monthText } from "../domain/month.ts";
import type { FunctionCaller } from "./driver/cells.ts";

/** Partitions are created months ahead, so a failure can wait for the next hour. */
const CHECKS_PER_ATTEMPT = 3_600;

/** A month, as `2030-01`, whose entries are in the default partition. */
export type MonthWithoutPartition = { readonly month: string; readonly entries: number };

/** Creates the partitions of the ledger of a cell for the next months. */
export class LedgerPartitions {
  readonly #cell: FunctionCaller;
  readonly #onChecked: (months: readonly MonthWithoutPartition[]) => void;
  #checks = 0;

  /** @param onChecked called after each check; only the owner of the tables can move the entries, see `move_other_month` */
  constructor(cell: FunctionCaller, onChecked: (months: readonly MonthWithoutPartition[]) => void) {
    this.#cell = cell;
    this.#onChecked = onChecked;
  }

  /** Called every second. */
  async maintain(): Promise<void> {
    if (this.#checks++ % CHECKS_PER_ATTEMPT !== 0) return;
    await this.#cell.call("create_ledger_partitions");
    const rows = await this.#cell.call<{ month: number; entries: bigint }>("months_without_partition");
    this.#onChecked(
      rows.map(({ month, entries }) => ({ month: monthText(month), entries: Number(entries) })),
    );
  }
}
