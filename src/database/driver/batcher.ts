import { setImmediate as immediate } from "node:timers/promises";
import * as fields from "../../../gen/sql/fields.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { Cells, FunctionCaller } from "./cells.ts";
import type { DatabaseClock } from "./database-clock.ts";

type BatcherOptions<Item, Result> = {
  /** Maximum concurrent batches. */
  readonly pipelines: number;
  readonly maxBatch: number;
  /** Limits the total weight of a batch if items differ in size. A single item is always allowed. */
  readonly weight?: { readonly of: (item: Item) => number; readonly max: number };
  /** Maximum number of waiting items; further items are refused as overloaded. */
  readonly maxWaiting: number;
  /** Executes a batch: one result or error per item, in the same order. */
  readonly execute: (items: readonly Item[]) => Promise<readonly (Result | DomainError)[]>;
  /** Of the database. */
  readonly clock: Pick<DatabaseClock, "now" | "roundTripMs">;
  readonly onBatch?: (size: number) => void;
  /** Whether other batchers have statements while this one delivers results. Default: no. */
  readonly hasOthers?: () => boolean;
  /** Turns shared with the other batchers of the database. Default: a statement waits only for the previous one. */
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
 * From this number of waiting items on, the next batch is sent before the results of the previous batch are delivered, unless
 * other batchers use that time.
 */
const MIN_OVERLAP = 8;

/**
 * While a batch runs, arriving items wait and form the next batch. There is no timer unless the database is far away.
 *
 * If many items wait when a batch returns, they are sent first and the results are delivered afterwards, so the database
 * works while the callers process their results. If few wait, or other batchers have statements, the next batch waits for the turn
 * of the event loop, so that it includes the items that callers submit in response: a small batch costs nearly as much as a
 * larger one.
 *
 * Where a batch spends more time on the way than in the database, further ones follow it on other pipelines, see Pace.
 */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  readonly #pace: Pace;
  /** In the order of arrival. */
  readonly #waiting: Waiting<Item, Result>[] = [];
  /** Pipelines with a batch that runs or is about to be sent. */
  #busy = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
    this.#pace = new Pace(options.clock);
  }

  /** Number of waiting items. */
  get depth(): number {
    return this.#waiting.length;
  }

  /** Whether a batch runs or is about to be sent. */
  get isBusy(): boolean {
    return this.#busy > 0;
  }

  /** Resolves to the item's result. */
  submit(item: Item): Promise<Result> {
    if (this.depth >= this.#options.maxWaiting) return Promise.reject(new DomainError("overloaded"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#use();
    });
  }

  /** Starts a pipeline for the waiting items, now if there is none, or when the next batch may follow the last one. */
  #use(): void {
    if (this.#busy === 0) void this.#sendBatches();
    else if (this.#busy < this.#options.pipelines && !this.#timer && this.#pace.isMostlyWaiting) {
      this.#timer = setTimeout(
        () => {
          this.#timer = undefined;
          if (this.depth > 0 && this.#busy < this.#options.pipelines) void this.#sendBatches();
        },
        Math.max(0, this.#pace.untilNextMs),
      );
    }
  }

  async #sendBatches(): Promise<void> {
    this.#busy++;
    const { turns } = this.#options;
    let before: Finished<Item, Result> | undefined;
    if (turns && !turns.tryBegin()) await turns.begin();
    for (;;) {
      if (before && (this.depth < MIN_OVERLAP || this.#options.hasOthers?.())) {
        deliver(before);
        before = undefined;
      }
      if (!before) await immediate();
      const batch = this.#isTooEarly() ? [] : this.#takeBatch();
      if (batch.length === 0) break;
      const finished = this.#execute(batch);
      if (before) {
        // The statement is sent at the end of this turn.
        await immediate();
        deliver(before);
      }
      before = await finished;
    }
    turns?.end();
    this.#busy--;
    if (before) deliver(before);
    if (this.depth > 0) this.#use();
  }

  /** Whether another pipeline has just sent a batch. */
  #isTooEarly(): boolean {
    return this.#busy > 1 && !(this.#pace.isMostlyWaiting && this.#pace.untilNextMs <= 0);
  }

  async #execute(batch: Waiting<Item, Result>[]): Promise<Finished<Item, Result>> {
    this.#options.onBatch?.(batch.length);
    const sentAt = this.#pace.send();
    try {
      const results = await this.#options.execute(batch.map((waiting) => waiting.item));
      this.#pace.end(sentAt);
      return { batch, results };
    } catch (error) {
      return { batch, error };
    }
  }

  #takeBatch(): Waiting<Item, Result>[] {
    const { maxBatch, weight } = this.#options;
    const waiting = this.#waiting;
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
    if (result === undefined || result instanceof DomainError)
      waiting.reject(result ?? new DomainError("internal", { cause: new Error("the batch has no result for this item") }));
    else waiting.resolve(result);
  });
}

/** The share of the last batch in the mean. */
const SHARE_OF_LAST = 1 / 8;
/** The resolution of timers. */
const MIN_GAP_MS = 1;

/**
 * When a batch may follow another one that has not returned. The time of a batch is the round trip of a statement without work, during
 * which the database could work for others, and its work: execution, locks, commit. If the round trip is longer, the next batch is
 * sent when the work on the last one should be over, so the database always has one to work on. Batches that have to wait
 * for each other take longer, so fewer are sent. If the work is longer, a second batch would only make both smaller.
 */
export class Pace {
  readonly #clock: Pick<DatabaseClock, "now" | "roundTripMs">;
  #meanMs: number | undefined;
  #sentAt = 0;

  constructor(clock: Pick<DatabaseClock, "now" | "roundTripMs">) {
    this.#clock = clock;
  }

  get isMostlyWaiting(): boolean {
    return this.#meanMs !== undefined && this.#clock.roundTripMs > this.#workMs;
  }

  /** The time until the next batch may be sent, at most 0 if it may be sent now. */
  get untilNextMs(): number {
    return this.#sentAt + Math.max(this.#workMs, MIN_GAP_MS) - this.#clock.now();
  }

  get #workMs(): number {
    return (this.#meanMs ?? 0) - this.#clock.roundTripMs;
  }

  /** Returns when the batch is sent. */
  send(): number {
    this.#sentAt = this.#clock.now();
    return this.#sentAt;
  }

  end(sentAt: number): void {
    const ms = this.#clock.now() - sentAt;
    this.#meanMs = this.#meanMs === undefined ? ms : this.#meanMs + (ms - this.#meanMs) * SHARE_OF_LAST;
  }
}

/** The limits apply per cell, so a full queue of one delays no call of another. */
type CellBatchersOptions<Item, Result> = Omit<BatcherOptions<Item, Result>, "execute" | "hasOthers" | "turns" | "clock"> & {
  /** One per cell. */
  readonly clocks: readonly BatcherOptions<Item, Result>["clock"][];
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
    // Skips the cells that were added but not used yet.
    this.#batchers.forEach((batcher) => {
      depth += batcher.depth;
    });
    return depth;
  }

  /** Resolves to the item's result. */
  submit(lane: Lane, item: Item): Promise<Result> {
    return this.#database.route(lane, (index) => {
      this.#batchers[index] ??= this.#create(index);
      return this.#batchers[index].submit(item);
    });
  }

  #create(index: number): Batcher<Item, Result> {
    const { execute, turns, clocks, ...limits } = this.#options;
    const cell = this.#database.all[index] as FunctionCaller;
    const batcher: Batcher<Item, Result> = new Batcher({
      ...limits,
      clock: clocks[index] as BatcherOptions<Item, Result>["clock"],
      execute: (items) => execute(cell, items, index),
      // A cell gets a part of the calls, so its batches should include as many of them as possible.
      hasOthers: () => this.#batchers.some((other) => other !== batcher && other.isBusy),
      ...(turns && { turns: turns.of(index) }),
    });
    return batcher;
  }
}

/** Limits the delay by the other batchers of the cell: they may have items all the time, or wait for a lock. */
const MAX_WAIT_MS = 20;

/** When one batcher of a cell can send statements. */
type Turns = {
  /** Call this before the first statement. If it returns false, call `begin`. */
  tryBegin(): boolean;
  /** Resolves when statements can be sent. */
  begin(): Promise<void>;
  /** Call this when no item waits after the last statement. */
  end(): void;
};

/**
 * The cells of a server divide its calls, so their batches are small. Therefore admission and billing of a cell do not send
 * statements at the same time while other cells are busy: the items of one gather until the other has none, and the other cells
 * use the cores.
 */
export class CellTurns {
  readonly #cells: BatcherTurns[][] = [];

  /** The turns of one more batcher of the cell. */
  of(cell: number): Turns {
    const batchers = this.#cells[cell] ?? [];
    this.#cells[cell] = batchers;
    const areOthersBusy = () => this.#cells.some((others) => others !== batchers && others.some(({ isBusy }) => isBusy));
    const turns = new BatcherTurns(batchers, areOthersBusy);
    batchers.push(turns);
    return turns;
  }
}

class BatcherTurns implements Turns {
  /** All batchers of the cell. */
  readonly #batchers: readonly BatcherTurns[];
  /** Whether other cells have items. */
  readonly #areOthersBusy: () => boolean;
  readonly #waiting = new Set<() => void>();
  /** Pipelines that send statements. */
  #sending = 0;

  constructor(batchers: readonly BatcherTurns[], areOthersBusy: () => boolean) {
    this.#batchers = batchers;
    this.#areOthersBusy = areOthersBusy;
  }

  get isBusy(): boolean {
    return this.#sending > 0 || this.#waiting.size > 0;
  }

  tryBegin(): boolean {
    const isTaken = this.#batchers.some((other) => other !== this && other.#sending > 0);
    if (isTaken && this.#areOthersBusy()) return false;
    this.#sending++;
    return true;
  }

  begin(): Promise<void> {
    return new Promise((resolve) => {
      const start = () => {
        clearTimeout(timer);
        this.#waiting.delete(start);
        this.#sending++;
        resolve();
      };
      const timer = setTimeout(start, MAX_WAIT_MS);
      this.#waiting.add(start);
    });
  }

  end(): void {
    this.#sending--;
    if (this.#batchers.some((batcher) => batcher.#sending > 0)) return;
    const next = this.#batchers.find((batcher) => batcher.#waiting.size > 0);
    if (!next) return;
    for (const start of next.#waiting) start();
  }
}

/**
 * A composite type of the schema, such as that of the items of a batch. A batch travels as an array of it: PostgreSQL reads that in
 * half the time of the same rows in JSON.
 */
export class CompositeType<Name extends string> {
  /** In the order of the type. */
  readonly fields: readonly Name[];

  constructor(fields: readonly Name[]) {
    this.fields = fields;
  }

  /** The rows as an array in PostgreSQL's text form. A field that is left out is null. */
  arrayOf(rows: readonly { readonly [Key in Name]?: Field }[]): string {
    let text = "";
    for (const row of rows) {
      text += text === "" ? '"(' : ',"(';
      let separator = "";
      for (const field of this.fields) {
        text += separator + fieldText(row[field], IN_ARRAY);
        separator = ",";
      }
      text += ')"';
    }
    return `{${text}}`;
  }

  /** A row in PostgreSQL's text form. A field that is left out is null. */
  rowOf(row: { readonly [Key in Name]?: Field }): string {
    let text = "";
    let separator = "(";
    for (const field of this.fields) {
      text += separator + fieldText(row[field], IN_ROW);
      separator = ",";
    }
    return `${text})`;
  }
}

/** Text that needs no quotes inside a row. */
const PLAIN = /^[\w.-]+$/;
/** Looked for first: a replacement that replaces nothing takes most of the time of a row. */
const ESCAPED = /["\\]/;
const ALL_ESCAPED = new RegExp(ESCAPED, "g");
/** How a field that needs quotes is written in a row, and how in a row that is an element of an array: escaped twice. */
const IN_ROW = { quote: '"', escape: String.raw`\$&`, hex: String.raw`\\x` };
const IN_ARRAY = { quote: String.raw`\"`, escape: String.raw`\\\$&`, hex: String.raw`\\\\x` };

/** An item of vx.admit: all calls of a batch with the same key. */
export const admitItem = new CompositeType(fields.admitItem);

/** A hold that vx.bill places. */
export const holdItem = new CompositeType(fields.holdItem);

/** The ending of a hold by vx.bill: with a charge, or without one. */
export const entryItem = new CompositeType(fields.entryItem);

/** A minute of an account with failed calls, for vx.record_failures. */
export const failureMinute = new CompositeType(fields.failureMinute);

/** A failed call. */
export const failureItem = new CompositeType(fields.failureItem);

/** The prices of a model, for vx.register_prices. */
export const priceItem = new CompositeType(fields.priceItem);

/** The prices without a bound, or those of a tier. */
export const priceRates = new CompositeType(fields.priceRates);

/** Bytes are written in hex. */
type Field = string | number | bigint | { readonly hex: string } | undefined;

function fieldText(value: Field, form: typeof IN_ROW): string {
  if (value === undefined) return "";
  if (typeof value === "object") return form.hex + value.hex;
  if (typeof value !== "string") return String(value);
  if (PLAIN.test(value)) return value;
  return form.quote + (ESCAPED.test(value) ? value.replace(ALL_ESCAPED, form.escape) : value) + form.quote;
}
