import { FairShare } from "../../domain/fair-share.ts";

export type SlotOptions = {
  readonly running: number;
  /** Maximum number of waiting calls; further calls are refused. */
  readonly waiting: number;
  readonly waitMs: number;
};

type Waiter = { readonly accountId: string; readonly enter: (entered: boolean) => void };

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
    return this.#running.taken;
  }

  get waiting(): number {
    return this.#waiting.taken;
  }

  /**
   * True if a slot was taken, which must be released once; false if none is free in time. Throws when the
   * signal aborts.
   */
  acquire(accountId: string, signal: AbortSignal): boolean | Promise<boolean> {
    if (this.#running.take(accountId, 1, this.#options.running)) return true;
    if (!this.#waiting.take(accountId, 1, this.#options.waiting)) return false;
    return this.#wait(accountId, signal);
  }

  /** A free slot goes to a waiting call before any new call. */
  release(accountId: string): void {
    this.#running.release(accountId, 1);
    for (const [next, queue] of this.#queues) {
      if (this.running >= this.#options.running) return;
      const [waiter] = queue;
      if (!waiter || !this.#running.take(next, 1, this.#options.running)) continue;
      this.#queues.delete(next);
      this.#queues.set(next, queue);
      waiter.enter(true);
    }
  }

  #wait(accountId: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#remove(waiter);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      };
      const waiter: Waiter = {
        accountId,
        enter: (entered) => {
          leave();
          resolve(entered);
        },
      };
      const abort = () => {
        leave();
        reject(signal.reason);
      };
      const timer = setTimeout(() => waiter.enter(false), this.#options.waitMs);
      signal.addEventListener("abort", abort, { once: true });
      this.#add(waiter);
    });
  }

  #add(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.accountId);
    if (queue) queue.add(waiter);
    else this.#queues.set(waiter.accountId, new Set([waiter]));
  }

  #remove(waiter: Waiter): void {
    const { accountId } = waiter;
    const queue = this.#queues.get(accountId);
    queue?.delete(waiter);
    if (queue?.size === 0) this.#queues.delete(accountId);
    this.#waiting.release(accountId, 1);
  }
}
