/** An estimate of the database's clock, used to give statements a latest start time. */
export class DatabaseClock {
  readonly #now: () => number;
  /** Database time minus local time, in milliseconds. */
  #offsetMs: number | undefined;

  /** @param now monotonic local clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Records a time that the database just returned. Because of the network delay, the estimate is early. */
  set(time: Date): void {
    this.#offsetMs = time.getTime() - this.#now();
  }

  /** The database's time in `ms` milliseconds; null, which means no limit, before its clock is known. */
  after(ms: number): Date | null {
    return this.#offsetMs === undefined ? null : new Date(this.#now() + this.#offsetMs + ms);
  }
}
