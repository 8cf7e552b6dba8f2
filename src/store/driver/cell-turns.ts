/** Limits the delay by the other batchers of the cell: they may have items all the time, or wait for a lock. */
const MAX_WAIT_MS = 20;

/** When one batcher of a cell can send statements. */
export type Turns = {
  /** Call this before the first statement. If it returns false, call `begin`. */
  tryBegin(): boolean;
  /** Resolves when statements can be sent. */
  begin(): Promise<void>;
  /** Call this when no item waits after the last statement. */
  end(): void;
};

/**
 * The cells of a server divide its calls, so their batches are small. Therefore admission and billing of a cell do not send
 * statements at the same time while other cells are busy: the items of one gather until the other has none, and the other cells
 * use the cores.
 */
export class CellTurns {
  readonly #cells: BatcherTurns[][] = [];

  /** For one batcher of the cell. */
  of(cell: number): Turns {
    const batchers = this.#cells[cell] ?? [];
    this.#cells[cell] = batchers;
    const areOthersBusy = () =>
      this.#cells.some((others) => others !== batchers && others.some(({ isBusy }) => isBusy));
    const turns = new BatcherTurns(batchers, areOthersBusy);
    batchers.push(turns);
    return turns;
  }
}

class BatcherTurns implements Turns {
  /** All of the cell. */
  readonly #batchers: readonly BatcherTurns[];
  /** Whether other cells have items. */
  readonly #areOthersBusy: () => boolean;
  readonly #waiting = new Set<() => void>();
  /** Pipelines that send statements. */
  #sending = 0;

  constructor(batchers: readonly BatcherTurns[], areOthersBusy: () => boolean) {
    this.#batchers = batchers;
    this.#areOthersBusy = areOthersBusy;
  }

  get isBusy(): boolean {
    return this.#sending > 0 || this.#waiting.size > 0;
  }

  tryBegin(): boolean {
    const isTaken = this.#batchers.some((other) => other !== this && other.#sending > 0);
    if (isTaken && this.#areOthersBusy()) return false;
    this.#sending++;
    return true;
  }

  begin(): Promise<void> {
    return new Promise((resolve) => {
      const start = () => {
        clearTimeout(timer);
        this.#waiting.delete(start);
        this.#sending++;
        resolve();
      };
      const timer = setTimeout(start, MAX_WAIT_MS);
      this.#waiting.add(start);
    });
  }

  end(): void {
    this.#sending--;
    if (this.#batchers.some((batcher) => batcher.#sending > 0)) return;
    const next = this.#batchers.find((batcher) => batcher.#waiting.size > 0);
    if (!next) return;
    for (const start of next.#waiting) start();
  }
}
