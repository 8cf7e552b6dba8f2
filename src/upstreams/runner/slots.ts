import { Shares } from "../../domain/shares.ts";

export type SlotOptions = {
  readonly running: number;
  /** One more that wants to wait is refused. */
  readonly waiting: number;
  readonly waitMs: number;
};

type Waiter = { readonly accountId: string; readonly enter: (entered: boolean) => void };

/**
 * How many calls may ask an upstream at once, and how many wait. An account has a share of both. Accounts that wait take
 * turns, and the calls of one account keep their order.
 */
export class Slots {
  readonly #options: SlotOptions;
  readonly #running = new Shares();
  readonly #waiting = new Shares();
  /** The accounts in the order of their turns. */
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

  /** True with a slot, to be released once; false where there is none. Throws when the signal aborts. */
  acquire(accountId: string, signal: AbortSignal): boolean | Promise<boolean> {
    if (this.#running.take(accountId, 1, this.#options.running)) return true;
    if (!this.#waiting.take(accountId, 1, this.#options.waiting)) return false;
    return this.#wait(accountId, signal);
  }

  /** A free slot goes to a call that waits, before any call that comes now. */
  release(accountId: string): void {
    this.#running.give(accountId, 1);
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
    this.#waiting.give(accountId, 1);
  }
}
