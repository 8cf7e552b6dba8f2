import * as sql from "../../gen/sql/calls.ts";
import type { Cells } from "../database/driver/cells.ts";
import { DomainError, type Reason } from "../domain/errors.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import { SlotArray } from "../domain/slot-array.ts";
import type { AdmittedKey } from "../keys/admit.ts";

const POLL_MS = 250;
const MAX_WATCHERS = 8_192;
const MAX_WATCHERS_PER_ACCOUNT = 100;

/** A reader of the events of an account. */
export type EventWatcher = {
  /**
   * Throws when the key is revoked or may not read any more, when it or its secret has expired, and when the server stops: also while
   * there are events to read.
   */
  check(): void;
  /** Resolves with the number of the last event when it is above `seq`. Rejects as `check` throws, and when the signal is aborted. */
  wait(seq: bigint, signal: AbortSignal): Promise<bigint>;
  close(): void;
};

/** The id is empty for a member, who watches without a key. */
type WatchingKey = Pick<AdmittedKey, "keyId">;

type Open = {
  readonly lane: Lane;
  readonly accountId: string;
  readonly key: WatchingKey;
  readonly onEnd: (error: DomainError) => void;
  ended: Reason | undefined;
  waiting:
    | {
        /** The number of the last event that the watcher knows. */
        readonly seq: bigint;
        readonly resolve: (seq: bigint) => void;
        readonly reject: (error: DomainError) => void;
      }
    | undefined;
};

/** Above the number of any event: of watchers that read, only the keys are checked. */
const NO_EVENT = 2n ** 63n - 1n;

type EventWatchOptions = {
  /** A pool without slow statements. */
  readonly database: Cells;
  /** Ends all watchers when a drain begins, which they would delay. */
  readonly drainSignal: AbortSignal;
  /** Called when a cell does not answer, once until it does again. */
  readonly onFailure: (error: unknown) => void;
};

/**
 * Tells watchers of events when their account has new ones, and ends them when their key stops working. One statement per cell asks for
 * all watchers, four times a second.
 */
export class EventWatch {
  readonly #database: Cells;
  readonly #drainSignal: AbortSignal;
  readonly #counts = new Map<string, number>();
  readonly #watchers = new SlotArray<Open>();
  readonly #onFailure: EventWatchOptions["onFailure"];
  /** The cells that do not answer. */
  readonly #failed = new Set<number>();
  /** The cells that have not answered the last statement yet. */
  readonly #asked = new Set<number>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ database, drainSignal, onFailure }: EventWatchOptions) {
    this.#onFailure = onFailure;
    this.#database = database;
    this.#drainSignal = drainSignal;
    drainSignal.addEventListener("abort", () => {
      for (const { waiting, onEnd } of this.#watchers) {
        waiting?.reject(stopping());
        onEnd(stopping());
      }
    });
  }

  /** @param onEnd called when the watcher ends, even if its caller reads nothing */
  open(accountId: string, key: WatchingKey, onEnd: Open["onEnd"]): EventWatcher {
    const own = this.#counts.get(accountId) ?? 0;
    if (own >= MAX_WATCHERS_PER_ACCOUNT || this.#watchers.size >= MAX_WATCHERS) throw new DomainError("overloaded");
    this.#counts.set(accountId, own + 1);
    const watcher: Open = {
      lane: laneOfId(accountId),
      accountId,
      key,
      onEnd,
      ended: undefined,
      waiting: undefined,
    };
    const slot = this.#watchers.insert(watcher);
    this.#timer ??= setTimeout(() => this.#poll(), POLL_MS);
    return {
      check: () => this.#check(watcher),
      wait: (seq, signal) => this.#wait(watcher, seq, signal),
      close: () => {
        this.#watchers.remove(slot);
        const left = (this.#counts.get(accountId) ?? 1) - 1;
        if (left === 0) this.#counts.delete(accountId);
        else this.#counts.set(accountId, left);
      },
    };
  }

  #check({ ended }: Open): void {
    if (this.#drainSignal.aborted) throw stopping();
    if (ended !== undefined) throw new DomainError(ended);
  }

  async #wait(watcher: Open, seq: bigint, signal: AbortSignal): Promise<bigint> {
    this.#check(watcher);
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<bigint>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    watcher.waiting = { seq, resolve, reject };
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      watcher.waiting = undefined;
    }
  }

  #poll(): void {
    this.#timer = this.#watchers.size > 0 ? setTimeout(() => this.#poll(), POLL_MS) : undefined;
    const watchers = [...this.#watchers];
    for (const [index, cell] of this.#database.all.entries()) {
      const own = watchers.filter(({ lane }) => this.#database.owns(index, lane));
      // A cell that does not answer delays only its own watchers.
      if (own.length === 0 || this.#asked.has(index)) continue;
      this.#asked.add(index);
      void this.#ask(cell, own)
        .then(
          () => void this.#failed.delete(index),
          (error: unknown) => {
            if (!this.#failed.has(index)) this.#onFailure(error);
            this.#failed.add(index);
          },
        )
        .finally(() => this.#asked.delete(index));
    }
  }

  async #ask(cell: Cells["home"], watchers: readonly Open[]): Promise<void> {
    // Quoted, because a member watches without a key, so the id is empty.
    const listOf = (values: readonly unknown[]) => `{${values.map((value) => `"${value}"`).join(",")}}`;
    const rows = await sql.watchedAccounts(cell, {
      lanes: listOf(watchers.map(({ lane }) => lane)),
      accountIds: listOf(watchers.map(({ accountId }) => accountId)),
      seqs: listOf(watchers.map(({ waiting }) => waiting?.seq ?? NO_EVENT)),
      keyIds: listOf(watchers.map(({ key }) => key.keyId)),
    });
    for (const { n, seq, ...row } of rows) {
      const watcher = watchers[Number(n) - 1];
      if (!watcher) continue;
      const ended = row.ended as Reason | null;
      if (ended !== null) {
        watcher.ended = ended;
        watcher.waiting?.reject(new DomainError(ended));
        watcher.onEnd(new DomainError(ended));
      } else if (seq !== null) watcher.waiting?.resolve(seq);
    }
  }
}

function stopping(): DomainError {
  return new DomainError("unavailable", { message: "The server stops. Connect again." });
}
