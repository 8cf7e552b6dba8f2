/**
 * Limits the work of one turn of the event loop, however much arrives on all connections at once. Work is
 * counted in units: a request, a stream, a piece of data, the end of any of them. When a turn has used its
 * units, further data waits for the next turns, in the order of arrival.
 */
export class ReadingTurns {
  readonly #maxUnits: number;
  readonly #waiting: (() => void)[] = [];
  #usedUnits = 0;
  #isCounting = false;

  constructor(maxUnitsPerTurn: number) {
    this.#maxUnits = maxUnitsPerTurn;
  }

  /** Counts work of this turn. */
  count(units = 1): void {
    this.#usedUnits += units;
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(this.#startTurn);
  }

  /** Processes input now, or in the first turn that has units left. */
  process(input: () => void): void {
    this.count();
    if (this.#waiting.length === 0 && this.#usedUnits <= this.#maxUnits) {
      input();
      return;
    }
    this.#waiting.push(input);
    setImmediate(this.#processNext);
  }

  #startTurn = (): void => {
    this.#usedUnits = 0;
    this.#isCounting = this.#waiting.length > 0;
    if (this.#isCounting) setImmediate(this.#startTurn);
  };

  /**
   * Each input runs in an immediate of its own: Node emits the new streams of an HTTP/2 session between two of
   * them, so that they are counted.
   */
  #processNext = (): void => {
    if (this.#usedUnits >= this.#maxUnits) {
      setImmediate(this.#processNext);
      return;
    }
    this.count();
    this.#waiting.shift()?.();
  };
}
