import type { Lane } from "../../domain/lane.ts";
import { Batcher, type BatcherOptions } from "./batcher.ts";
import type { Cells, FunctionCaller } from "./cells.ts";

/** Limits of each cell: a full queue of one delays no call of another. */
type CellBatchersOptions<Item, Result> = Omit<BatcherOptions<Item, Result>, "execute"> & {
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
  readonly #batchers: readonly Batcher<Item, Result>[];

  constructor(database: Cells, { execute, ...limits }: CellBatchersOptions<Item, Result>) {
    this.#database = database;
    this.#batchers = database.all.map(
      (cell, index) => new Batcher({ ...limits, execute: (items) => execute(cell, items, index) }),
    );
  }

  /** Number of waiting items. */
  get depth(): number {
    let depth = 0;
    for (const batcher of this.#batchers) depth += batcher.depth;
    return depth;
  }

  /** Resolves to the item's result. Items of one lane are sent in this order. */
  submit(lane: Lane, item: Item): Promise<Result> {
    return this.#database.route(lane, (cell) =>
      (this.#batchers[cell] as Batcher<Item, Result>).submit(lane, item),
    );
  }
}
