import { isDeepStrictEqual } from "node:util";
import { reachCell } from "../driver/database.ts";
import type { CellToMigrate } from "./migrate-cell.ts";

const PROBE_MS = 5_000;
/** A split takes less time. After this time, an unreachable cell may own the lane. */
const OVERDUE_MS = 5_000;

/**
 * Cells of cells.yaml that are not in use yet, because all lanes belong to others, such as a standby that will become a cell.
 * All of them are used as soon as a lane has no owner, because one of them may own it. A cell in use is never left out of
 * lists, even while it cannot be reached.
 */
export class WaitingCells {
  readonly #known: Map<string, CellToMigrate>;
  readonly #waiting: Map<string, CellToMigrate>;
  readonly #use: (cell: CellToMigrate) => number;
  readonly #role: string;
  /** The waiting cells that could be reached last time. */
  readonly #reached = new Set<string>();
  #unownedSince: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #listeners: ((index: number) => void)[] = [];

  /** @param use adds the cell to the pools and returns its index there */
  constructor(
    cells: readonly CellToMigrate[],
    used: readonly CellToMigrate[],
    role: string,
    use: (cell: CellToMigrate) => number,
  ) {
    this.#role = role;
    this.#known = new Map(cells.map((cell) => [cell.name, cell]));
    this.#waiting = new Map(cells.filter((cell) => !used.includes(cell)).map((cell) => [cell.name, cell]));
    this.#use = use;
  }

  get known(): readonly CellToMigrate[] {
    return [...this.#known.values()];
  }

  /** The cells that this process uses, and those that it could use. A split needs every server to reach the new cell. */
  get usableNames(): readonly string[] {
    return [...this.#known.keys()].filter((name) => !this.#waiting.has(name) || this.#reached.has(name));
  }

  get waiting(): readonly CellToMigrate[] {
    return [...this.#waiting.values()];
  }

  /** Calls the listener with the index of each cell that is used from now on. */
  onUse(listener: (index: number) => void): void {
    this.#listeners.push(listener);
  }

  /** Tries now and periodically to reach the waiting cells. */
  startProbes(): void {
    void this.#probe();
    this.#timer ??= setInterval(() => void this.#probe(), PROBE_MS);
  }

  stopProbes(): void {
    clearInterval(this.#timer);
  }

  use(cell: CellToMigrate): void {
    if (!this.#waiting.delete(cell.name)) return;
    const index = this.#use(cell);
    for (const listener of this.#listeners) listener(index);
  }

  useAll(): void {
    for (const cell of this.waiting) this.use(cell);
  }

  /** Call this when the owners of the lanes were read. */
  onOwners(unowned: number): void {
    if (unowned === 0) this.#unownedSince = undefined;
    else {
      this.#unownedSince ??= performance.now();
      const isOverdue = performance.now() - this.#unownedSince > OVERDUE_MS;
      for (const cell of this.waiting) if (isOverdue || this.#reached.has(cell.name)) this.use(cell);
    }
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
    void this.#probe();
    return { added: added.map(({ name }) => name), changed: changed.map(({ name }) => name) };
  }

  async #probe(): Promise<void> {
    await Promise.all(
      this.waiting.map(async ({ name, address, schema }) => {
        try {
          await reachCell(address, schema, this.#role);
          this.#reached.add(name);
        } catch {
          this.#reached.delete(name);
        }
      }),
    );
  }
}
