/** Limits the work for one schema, which a caller wrote. */
export class WorkBudget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  /** Returns false if the work exceeds the budget. */
  spend(units: number): boolean {
    this.#left -= units;
    return this.#left >= 0;
  }
}
