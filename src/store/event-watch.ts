import { DomainError, type Reason } from "../domain/errors.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import { SlotArray } from "../domain/slot-array.ts";
import type { Cells } from "./driver/cells.ts";

const POLL_MS = 250;
const MAX_WATCHERS = 8_192;
const MAX_WATCHERS_PER_ACCOUNT = 100;

/** A reader of the events of an account. */
type Watcher = {
  readonly lane: Lane;
  readonly accountId: string;
  readonly keyId: string;
};

type Waiting = Watcher & {
  /** The number of the last event that the watcher knows. */
  readonly seq: bigint;
  readonly resolve: (seq: bigint) => void;
  readonly reject: (error: DomainError) => void;
};

type Row = { readonly n: bigint; readonly seq: bigint | null; readonly ended: Reason | null };

type EventWatchOptions = {
  /** A pool without slow statements. */
  readonly database: Cells;
  /** Ends all watchers when a drain begins, which they would delay. */
  readonly drainSignal: AbortSignal;
};

/**
 * Tells watchers of events when their account has new ones, and ends them when their key stops working. One statement per cell asks for
 * all watchers that wait, four times a second.
 */
export class EventWatch {
  readonly #database: Cells;
  readonly #drainSignal: AbortSignal;
  readonly #watchers = new Map<string, number>();
  #count = 0;
  readonly #waiting = new SlotArray<Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ database, drainSignal }: EventWatchOptions) {
    this.#database = database;
    this.#drainSignal = drainSignal;
    drainSignal.addEventListener("abort", () => {
      for (const { reject } of this.#waiting) reject(stopping());
    });
  }

  /** Admits a watcher; the returned function removes it. */
  open(accountId: string): () => void {
    const own = this.#watchers.get(accountId) ?? 0;
    if (own >= MAX_WATCHERS_PER_ACCOUNT || this.#count >= MAX_WATCHERS) throw new DomainError("overloaded");
    this.#watchers.set(accountId, own + 1);
    this.#count++;
    return () => {
      const left = (this.#watchers.get(accountId) ?? 1) - 1;
      if (left === 0) this.#watchers.delete(accountId);
      else this.#watchers.set(accountId, left);
      this.#count--;
    };
  }

  /**
   * Resolves with the number of the last event when it is above `seq`. Rejects when the key is revoked or has expired, when the
   * signal is aborted, and when the server stops.
   */
  async wait(accountId: string, keyId: string, seq: bigint, signal: AbortSignal): Promise<bigint> {
    if (this.#drainSignal.aborted) throw stopping();
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<bigint>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const slot = this.#waiting.insert({ lane: laneOfId(accountId), accountId, keyId, seq, resolve, reject });
    this.#timer ??= setTimeout(() => void this.#poll(), POLL_MS);
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#waiting.remove(slot);
    }
  }

  async #poll(): Promise<void> {
    const waiting = [...this.#waiting];
    await Promise.all(
      this.#database.all.map((cell, index) => {
        const own = waiting.filter(({ lane }) => this.#database.owns(index, lane));
        // A cell that does not answer delays only its own watchers.
        return own.length === 0 ? undefined : this.#ask(cell, own).catch(() => undefined);
      }),
    );
    this.#timer = this.#waiting.size > 0 ? setTimeout(() => void this.#poll(), POLL_MS) : undefined;
  }

  async #ask(cell: Cells["home"], waiting: readonly Waiting[]): Promise<void> {
    const listOf = (values: readonly unknown[]) => `{${values.join(",")}}`;
    const rows = await cell.call<Row>(
      "watched_accounts",
      listOf(waiting.map(({ lane }) => lane)),
      listOf(waiting.map(({ accountId }) => accountId)),
      listOf(waiting.map(({ seq }) => seq)),
      listOf(waiting.map(({ keyId }) => keyId)),
    );
    for (const { n, seq, ended } of rows) {
      const watcher = waiting[Number(n) - 1];
      if (ended !== null) watcher?.reject(new DomainError(ended));
      else if (seq !== null) watcher?.resolve(seq);
    }
  }
}

function stopping(): DomainError {
  return new DomainError("unavailable", { message: "The server stops. Connect again." });
}
