/** An estimate of the database's clock, so that a statement can say until when it may start. */
export class DatabaseClock {
  readonly #now: () => number;
  /** Database time minus local time, in milliseconds. */
  #offsetMs: number | undefined;

  /** @param now local milliseconds that never go back */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes the time that the database just returned. The result was under way for a while, so the estimate is early. */
  set(time: Date): void {
    this.#offsetMs = time.getTime() - this.#now();
  }

  /** The database's time in so many milliseconds; null, which is no limit, until its clock is known. */
  after(ms: number): Date | null {
    return this.#offsetMs === undefined ? null : new Date(this.#now() + this.#offsetMs + ms);
  }
}
