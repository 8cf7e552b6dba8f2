import { setImmediate as nextTurn } from "node:timers/promises";
import { DomainError } from "../../domain/errors.ts";

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
};

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * While a batch runs, arriving items wait and form the next batch. There is no timer: a batch waits only for the turn of the
 * event loop, so that it includes the items that callers submit in response to the previous results.
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
    for (;;) {
      await nextTurn();
      const batch = this.#takeBatch(pipeline);
      if (batch.length === 0) break;
      this.#depth -= batch.length;
      this.#options.onBatch?.(batch.length);
      try {
        const results = await this.#options.execute(batch.map((waiting) => waiting.item));
        batch.forEach((waiting, i) => {
          const result = results[i];
          if (result === undefined || result instanceof DomainError) waiting.reject(result ?? noResult());
          else waiting.resolve(result);
        });
      } catch (error) {
        for (const waiting of batch) waiting.reject(error);
      }
    }
    this.#busy[pipeline] = false;
  }

  #takeBatch(pipeline: number): Waiting<Item, Result>[] {
    const { maxBatch, weight } = this.#options;
    const waiting = this.#waiting[pipeline] ?? [];
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

function noResult(): DomainError {
  return new DomainError("internal", { cause: new Error("the batch has no result for this item") });
}
