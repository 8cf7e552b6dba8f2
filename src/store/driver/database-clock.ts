/** The database's clock and its distance, estimated from the times of statements. */
export class DatabaseClock {
  /** Monotonic local clock in milliseconds. */
  readonly now: () => number;
  /** The time from sending a statement that reads nothing to its result. */
  readonly roundTrip = new ShortestTime();
  /** The same of a statement that commits, which waits for the disk. */
  readonly commit = new ShortestTime();
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

/** A busy server measures many times too long, so the shortest of this many counts. */
const SAMPLES = 30;

/** The shortest of the last measured times. */
class ShortestTime {
  readonly #samples: number[] = [];
  /** 0 before the first sample. */
  ms = 0;

  add(ms: number): void {
    this.#samples.push(ms);
    if (this.#samples.length > SAMPLES) this.#samples.shift();
    this.ms = Math.min(...this.#samples);
  }
}

/** For batches: the time that such a statement takes without work. */
export function idleClock(clock: DatabaseClock | undefined, statement: "roundTrip" | "commit") {
  if (!clock) throw new Error("a cell has no clock");
  return { now: clock.now, idleMs: () => clock[statement].ms };
}
