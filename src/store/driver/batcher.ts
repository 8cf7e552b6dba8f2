import { setImmediate as nextTurn } from "node:timers/promises";
import { DomainError } from "../../domain/errors.ts";
import type { Turns } from "./cell-turns.ts";

export type BatcherOptions<Item, Result> = {
  /** Maximum concurrent batches. Items of one lane always use the same pipeline. */
  readonly pipelines: number;
  readonly maxBatch: number;
  /** Limits the total weight of a batch if items differ in size. A single item is always allowed. */
  readonly weight?: { readonly of: (item: Item) => number; readonly max: number };
  /** Maximum number of waiting items; further items are refused as overloaded. */
  readonly maxWaiting: number;
  /** Executes a batch: one result or error per item, in the same order. */
  readonly execute: (items: readonly Item[]) => Promise<readonly (Result | DomainError)[]>;
  readonly onBatch?: (size: number) => void;
  /** Whether other batchers have statements while this one delivers results. Default: no. */
  readonly hasOthers?: () => boolean;
  /** Beside other batchers of the same database. Default: a statement waits only for the one before it. */
  readonly turns?: Turns;
};

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

/** A batch with its results, or with the error of the whole batch. */
type Finished<Item, Result> = { readonly batch: readonly Waiting<Item, Result>[] } & (
  | { readonly results: readonly (Result | DomainError)[] }
  | { readonly error: unknown }
);

/**
 * From this number of waiting items on, the next batch is sent before the results of the batch before are delivered, unless other
 * batchers use that time.
 */
const MIN_OVERLAP = 8;

/**
 * While a batch runs, arriving items wait and form the next batch. There is no timer.
 *
 * If many items wait when a batch returns, they are sent first and the results are delivered afterwards, so the database
 * works while the callers process their results. If few wait, or other batchers have statements, the next batch waits for the turn
 * of the event loop, so that it includes the items that callers submit in response: a small batch costs nearly as much as a
 * larger one.
 */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  readonly #waiting: Waiting<Item, Result>[][];
  readonly #busy: boolean[];
  #depth = 0;

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
    this.#waiting = Array.from({ length: options.pipelines }, () => []);
    this.#busy = Array.from({ length: options.pipelines }, () => false);
  }

  /** Number of waiting items. */
  get depth(): number {
    return this.#depth;
  }

  /** Whether a batch runs or is about to be sent. */
  get isBusy(): boolean {
    return this.#busy.includes(true);
  }

  /** Resolves to the item's result. Items of one lane are sent in this order. */
  submit(lane: number, item: Item): Promise<Result> {
    if (this.#depth >= this.#options.maxWaiting) return Promise.reject(new DomainError("overloaded"));
    const pipeline = lane % this.#options.pipelines;
    return new Promise((resolve, reject) => {
      this.#depth++;
      this.#waiting[pipeline]?.push({ item, resolve, reject });
      if (!this.#busy[pipeline]) {
        this.#busy[pipeline] = true;
        void this.#sendBatches(pipeline);
      }
    });
  }

  async #sendBatches(pipeline: number): Promise<void> {
    const { turns } = this.#options;
    const waiting = this.#waiting[pipeline] ?? [];
    let before: Finished<Item, Result> | undefined;
    if (turns && !turns.tryBegin()) await turns.begin();
    for (;;) {
      if (before && (waiting.length < MIN_OVERLAP || this.#options.hasOthers?.())) {
        deliver(before);
        before = undefined;
      }
      if (!before) await nextTurn();
      const batch = this.#takeBatch(waiting);
      if (batch.length === 0) break;
      const finished = this.#execute(batch);
      if (before) {
        // The statement is sent at the end of this turn.
        await nextTurn();
        deliver(before);
      }
      before = await finished;
    }
    turns?.end();
    this.#busy[pipeline] = false;
  }

  async #execute(batch: Waiting<Item, Result>[]): Promise<Finished<Item, Result>> {
    this.#depth -= batch.length;
    this.#options.onBatch?.(batch.length);
    try {
      return { batch, results: await this.#options.execute(batch.map((waiting) => waiting.item)) };
    } catch (error) {
      return { batch, error };
    }
  }

  #takeBatch(waiting: Waiting<Item, Result>[]): Waiting<Item, Result>[] {
    const { maxBatch, weight } = this.#options;
    let count = Math.min(maxBatch, waiting.length);
    if (weight) {
      let sum = 0;
      const end = waiting.slice(0, count).findIndex(({ item }) => {
        sum += weight.of(item);
        return sum > weight.max;
      });
      if (end >= 0) count = Math.max(end, 1);
    }
    return waiting.splice(0, count);
  }
}

function deliver<Item, Result>(finished: Finished<Item, Result>): void {
  if ("error" in finished) {
    for (const waiting of finished.batch) waiting.reject(finished.error);
    return;
  }
  finished.batch.forEach((waiting, i) => {
    const result = finished.results[i];
    if (result === undefined || result instanceof DomainError) waiting.reject(result ?? noResult());
    else waiting.resolve(result);
  });
}

function noResult(): DomainError {
  return new DomainError("internal", { cause: new Error("the batch has no result for this item") });
}
