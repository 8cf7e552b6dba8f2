/** A busy server measures many round trips too long, so the shortest of this many counts. */
const ROUND_TRIPS = 30;

/** The database's clock and its distance, estimated from the times of statements. */
export class DatabaseClock {
  /** Monotonic local clock in milliseconds. */
  readonly now: () => number;
  readonly #roundTripsMs: number[] = [];
  /** The time from sending a statement without work to its result; 0 before it is known. */
  roundTripMs = 0;
  #measured: { readonly offsetMs: number; readonly halfTripMs: number } | undefined;

  /** @param now monotonic local clock in milliseconds */
  constructor(now: () => number) {
    this.now = now;
  }

  /** Records a time that the database returned for a statement that was sent at `sentAt` of the local clock. */
  set(time: Date, sentAt: number): void {
    const now = this.now();
    this.#measured = { offsetMs: time.getTime() - (sentAt + now) / 2, halfTripMs: (now - sentAt) / 2 };
  }

  /** Records the time of a statement without work. */
  addRoundTrip(ms: number): void {
    this.#roundTripsMs.push(ms);
    if (this.#roundTripsMs.length > ROUND_TRIPS) this.#roundTripsMs.shift();
    this.roundTripMs = Math.min(...this.#roundTripsMs);
  }

  /** The database's time in milliseconds since 1970; undefined before it is known. */
  get timeMs(): number | undefined {
    return this.#measured && Math.floor(this.now() + this.#measured.offsetMs);
  }

  /** By how much `timeMs` may be wrong. */
  get uncertaintyMs(): number {
    return this.#measured?.halfTripMs ?? Number.POSITIVE_INFINITY;
  }

  /**
   * The latest start of a statement that begins within `ms` milliseconds; null, which means no limit, before the clock is known.
   * It is never too late: the time counts as that of the moment when its result arrived.
   */
  after(ms: number): Date | null {
    if (!this.#measured) return null;
    const { offsetMs, halfTripMs } = this.#measured;
    return new Date(this.now() + offsetMs - halfTripMs + ms);
  }
}

/** The time of the database of a cell. A cell whose clock is not known cannot be used yet. */
export function timeOf(clocks: readonly DatabaseClock[], cell: number): number {
  return clocks[cell]?.timeMs ?? clocks[0]?.timeMs ?? Date.now();
}
