export type SlotOptions = {
  readonly running: number;
  /** One more that wants to wait is refused. */
  readonly waiting: number;
  readonly waitMs: number;
};

type Waiter = { readonly enter: (entered: boolean) => void };

/** How many calls may ask an upstream at once. The others wait in the order they came, for a while. */
export class Slots {
  readonly #options: SlotOptions;
  readonly #waiters = new Set<Waiter>();
  #running = 0;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** True with a slot, to be released once; false where there is none to be had. Throws when the signal aborts. */
  acquire(signal: AbortSignal): boolean | Promise<boolean> {
    if (this.#running < this.#options.running) {
      this.#running++;
      return true;
    }
    if (this.#waiters.size >= this.#options.waiting) return false;
    return this.#wait(signal);
  }

  release(): void {
    const [next] = this.#waiters;
    // The slot changes hands without becoming free: nobody who comes now gets in before those who wait.
    if (next) next.enter(true);
    else this.#running--;
  }

  #wait(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(waiter);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      };
      const waiter: Waiter = {
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
      this.#waiters.add(waiter);
    });
  }
}
