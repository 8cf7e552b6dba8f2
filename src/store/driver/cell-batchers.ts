import type { Lane } from "../../domain/lane.ts";
import { Batcher, type BatcherOptions } from "./batcher.ts";
import type { CellTurns } from "./cell-turns.ts";
import type { Cells, FunctionCaller } from "./cells.ts";

/** Limits of each cell: a full queue of one delays no call of another. */
type CellBatchersOptions<Item, Result> = Omit<
  BatcherOptions<Item, Result>,
  "execute" | "hasOthers" | "turns"
> & {
  /** Shared by all batchers of the server. Default: their statements do not wait for each other. */
  readonly turns?: CellTurns | undefined;
  /** Executes a batch in a cell, which is also given by its index. */
  readonly execute: (
    cell: FunctionCaller,
    items: readonly Item[],
    index: number,
  ) => ReturnType<BatcherOptions<Item, Result>["execute"]>;
};

/** One batcher per cell: a batch has items of all lanes of its cell. */
export class CellBatchers<Item, Result> {
  readonly #database: Cells;
  readonly #options: CellBatchersOptions<Item, Result>;
  readonly #batchers: Batcher<Item, Result>[] = [];

  constructor(database: Cells, options: CellBatchersOptions<Item, Result>) {
    this.#database = database;
    this.#options = options;
    for (const index of database.all.keys()) this.#batchers[index] = this.#create(index);
  }

  /** Number of waiting items. */
  get depth(): number {
    let depth = 0;
    // Skips the cells that were added and not used yet.
    this.#batchers.forEach((batcher) => {
      depth += batcher.depth;
    });
    return depth;
  }

  /** Resolves to the item's result. Items of one lane are sent in this order. */
  submit(lane: Lane, item: Item): Promise<Result> {
    return this.#database.route(lane, (index) => {
      this.#batchers[index] ??= this.#create(index);
      return this.#batchers[index].submit(lane, item);
    });
  }

  #create(index: number): Batcher<Item, Result> {
    const { execute, turns, ...limits } = this.#options;
    const cell = this.#database.all[index] as FunctionCaller;
    const batcher: Batcher<Item, Result> = new Batcher({
      ...limits,
      execute: (items) => execute(cell, items, index),
      // A cell gets a part of the calls, so its batches should include as many of them as possible.
      hasOthers: () => this.#batchers.some((other) => other !== batcher && other.isBusy),
      ...(turns && { turns: turns.of(index) }),
    });
    return batcher;
  }
}
