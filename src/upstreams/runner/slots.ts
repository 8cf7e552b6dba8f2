import { FairShare } from "../../domain/fair-share.ts";

export type SlotOptions = {
  readonly maxRunning: number;
  /** Further calls are refused. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
};

type Waiter = { readonly accountId: string; readonly settle: (isGranted: boolean) => void };

/**
 * Limits the running and the waiting calls of an upstream. Each account gets a share of both. Waiting
 * accounts take turns, and calls of one account keep their order.
 */
export class Slots {
  readonly #options: SlotOptions;
  readonly #running = new FairShare();
  readonly #waiting = new FairShare();
  /** Queues of the accounts, in the order of their turns. */
  readonly #queues = new Map<string, Set<Waiter>>();

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.inUse;
  }

  get waiting(): number {
    return this.#waiting.inUse;
  }

  /**
   * True if a slot was taken, which must be released once; false if none is free in time. Throws if none is free and
   * the signal is aborted, or is aborted while the call waits.
   */
  acquire(accountId: string, signal: AbortSignal): boolean | Promise<boolean> {
    if (this.#running.acquire(accountId, 1, this.#options.maxRunning)) return true;
    signal.throwIfAborted();
    if (!this.#waiting.acquire(accountId, 1, this.#options.maxWaiting)) return false;
    return this.#wait(accountId, signal);
  }

  /** A free slot goes to a waiting call before any new call. */
  release(accountId: string): void {
    this.#running.release(accountId, 1);
    for (const [next, queue] of this.#queues) {
      if (this.running >= this.#options.maxRunning) return;
      const [waiter] = queue;
      if (!waiter || !this.#running.acquire(next, 1, this.#options.maxRunning)) continue;
      this.#queues.delete(next);
      this.#queues.set(next, queue);
      waiter.settle(true);
    }
  }

  #wait(accountId: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const stopWaiting = () => {
        this.#dequeue(waiter);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      };
      const waiter: Waiter = {
        accountId,
        settle: (isGranted) => {
          stopWaiting();
          resolve(isGranted);
        },
      };
      const abort = () => {
        stopWaiting();
        reject(signal.reason);
      };
      const timer = setTimeout(() => waiter.settle(false), this.#options.maxWaitMs);
      signal.addEventListener("abort", abort, { once: true });
      this.#enqueue(waiter);
    });
  }

  #enqueue(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.accountId);
    if (queue) queue.add(waiter);
    else this.#queues.set(waiter.accountId, new Set([waiter]));
  }

  #dequeue(waiter: Waiter): void {
    const { accountId } = waiter;
    const queue = this.#queues.get(accountId);
    queue?.delete(waiter);
    if (queue?.size === 0) this.#queues.delete(accountId);
    this.#waiting.release(accountId, 1);
  }
}
