import { isDeepStrictEqual } from "node:util";
import type { CellToMigrate } from "../store/schema/migrate-cell.ts";

/**
 * Cells of cells.yaml that are not in use yet, because all lanes belong to others, such as a standby that will become a cell. Each
 * is used as soon as it can be reached at the start, or as soon as some lane has no owner: then it may be the owner.
 */
export class WaitingCells {
  readonly #known: Map<string, CellToMigrate>;
  readonly #waiting: Map<string, CellToMigrate>;
  readonly #use: (cell: CellToMigrate) => number;
  readonly #listeners: ((index: number) => void)[] = [];

  /** @param use adds the cell to the pools and returns its index there */
  constructor(
    cells: readonly CellToMigrate[],
    used: readonly CellToMigrate[],
    use: (cell: CellToMigrate) => number,
  ) {
    this.#known = new Map(cells.map((cell) => [cell.name, cell]));
    this.#waiting = new Map(cells.filter((cell) => !used.includes(cell)).map((cell) => [cell.name, cell]));
    this.#use = use;
  }

  /** All cells of the file. */
  get known(): readonly CellToMigrate[] {
    return [...this.#known.values()];
  }

  get names(): readonly string[] {
    return [...this.#known.keys()];
  }

  get waiting(): readonly CellToMigrate[] {
    return [...this.#waiting.values()];
  }

  /** Calls the listener with the index of each cell that is used from now on. */
  onUse(listener: (index: number) => void): void {
    this.#listeners.push(listener);
  }

  use(cell: CellToMigrate): void {
    if (!this.#waiting.delete(cell.name)) return;
    const index = this.#use(cell);
    for (const listener of this.#listeners) listener(index);
  }

  useAll(): void {
    for (const cell of this.waiting) this.use(cell);
  }

  /** Adds the new cells of the file. Returns the names of those that were added, and of those whose change needs a restart. */
  reload(cells: readonly CellToMigrate[]): { readonly added: string[]; readonly changed: string[] } {
    const added = cells.filter(({ name }) => !this.#known.has(name));
    const changed = this.known.filter(
      (cell) =>
        !isDeepStrictEqual(
          cell,
          cells.find(({ name }) => name === cell.name),
        ),
    );
    for (const cell of added) {
      this.#known.set(cell.name, cell);
      this.#waiting.set(cell.name, cell);
    }
    return { added: added.map(({ name }) => name), changed: changed.map(({ name }) => name) };
  }
}
