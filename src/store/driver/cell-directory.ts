import { setTimeout as wait } from "node:timers/promises";
import { DomainError } from "../../domain/errors.ts";
import { LANE_COUNT, type Lane, lanesOfText } from "../../domain/lane.ts";
import type { Cell } from "./cells.ts";
import { LaneMap } from "./lane-map.ts";
import { LaneMoved } from "./store-error.ts";

/** A move of lanes takes less than two seconds, so that calls wait for it and do not fail. */
const MAX_RESENDS = 50;
const PAUSE_MS = 100;

export type DirectoryCell = {
  readonly name: string;
  /** A pool without slow statements. */
  readonly pool: Cell;
  /** The lanes of the cell until it can be reached for the first time. */
  readonly assumedLanes: readonly Lane[];
  /** Called before the first use of the cell. */
  readonly prepare: () => Promise<void>;
};

type StateRow = { lanes: string; epochs: string; shared_version: bigint };
type SharedRow = { version: bigint; plans: string; operators: string; prices: string };

/** Which cell owns each lane, and which cells can be used. The first cell shares plans, operators and prices with the others. */
export class CellDirectory {
  readonly #cells: readonly DirectoryCell[];
  readonly #map: LaneMap;
  readonly #prepared = new Set<number>();
  /** A cell counts as usable until a check of it fails. */
  readonly #usable: Set<number>;
  /** Versions of the shared data. */
  readonly #versions = new Map<number, bigint>();
  #reading: Promise<unknown> | undefined;

  constructor(cells: readonly DirectoryCell[]) {
    this.#cells = cells;
    this.#usable = new Set(cells.keys());
    this.#map = new LaneMap(cells.map(({ assumedLanes }) => assumedLanes));
  }

  /** The cells whose calls are refused. */
  get excluded(): string[] {
    return this.#cells.flatMap(({ name }, cell) => (this.#usable.has(cell) ? [] : [name]));
  }

  get unownedLanes(): Lane[] {
    return this.#map.unowned;
  }

  nameOf(cell: number): string {
    return this.#cells[cell]?.name ?? "";
  }

  isUsable(cell: number): boolean {
    return this.#usable.has(cell);
  }

  /** The lane after the last one stands for everything that belongs to no account. */
  owns(cell: number, lane: Lane): boolean {
    return lane === LANE_COUNT ? cell === 0 : this.#map.ownerOf(lane) === cell;
  }

  /** Sends to the owner of the lane, again after another cell became the owner. */
  async route<Result>(lane: Lane, send: (cell: number) => Promise<Result>): Promise<Result> {
    for (let resends = 0; ; resends++) {
      const cell = lane === LANE_COUNT ? 0 : this.#map.ownerOf(lane);
      if (cell !== undefined) {
        this.#requireUsable(cell);
        try {
          return await send(cell);
        } catch (error) {
          if (!(error instanceof LaneMoved) || resends === MAX_RESENDS) throw error;
        }
      } else if (resends === MAX_RESENDS) {
        throw new DomainError("unavailable", { cause: new Error(`no cell owns lane ${lane}`) });
      }
      if (resends > 0) await wait(PAUSE_MS);
      await this.#readAll();
    }
  }

  /** Call this when a check of the cell has failed: its calls are refused until `maintain` succeeds. */
  exclude(cell: number): void {
    this.#usable.delete(cell);
  }

  /** Reads which lanes the cell owns and gives it what the first cell shares. Call this periodically while it can be reached. */
  async maintain(cell: number): Promise<void> {
    const { pool, prepare } = this.#cells[cell] as DirectoryCell;
    if (!this.#prepared.has(cell)) await prepare();
    this.#prepared.add(cell);
    const shared = this.#versions.get(0);
    await this.#readState(cell);
    if (cell !== 0 && shared !== undefined && (this.#versions.get(cell) ?? 0n) < shared) {
      await copyShared(await this.#readShared(), pool);
    }
    this.#usable.add(cell);
  }

  /** Copies what the first cell shares to the others. Those that cannot be reached get it before they are used again. */
  async share(): Promise<void> {
    const shared = await this.#readShared();
    this.#versions.set(0, shared.version);
    const others = this.#cells.filter((_, cell) => cell !== 0 && this.#usable.has(cell));
    await Promise.all(others.map(({ pool }) => copyShared(shared, pool)));
  }

  #requireUsable(cell: number): void {
    if (this.#usable.has(cell)) return;
    const cause = new Error(`the cell "${this.nameOf(cell)}" cannot be used`);
    throw new DomainError("unavailable", { cause });
  }

  /** Calls that were refused at the same time share one reading. */
  #readAll(): Promise<unknown> {
    this.#reading ??= Promise.allSettled([...this.#usable].map((cell) => this.#readState(cell))).finally(
      () => {
        this.#reading = undefined;
      },
    );
    return this.#reading;
  }

  async #readState(cell: number): Promise<void> {
    const [row] = (await this.#cells[cell]?.pool.call<StateRow>("cell_state")) ?? [];
    if (!row) return;
    const epochs = row.epochs.split(",");
    const lanes = lanesOfText(row.lanes);
    this.#map.record(cell, new Map(lanes.map((lane, i) => [lane, BigInt(epochs[i] ?? 0)])));
    this.#versions.set(cell, row.shared_version);
  }

  async #readShared(): Promise<SharedRow> {
    const [row] = (await this.#cells[0]?.pool.call<SharedRow>("read_shared_data")) ?? [];
    return row as SharedRow;
  }
}

async function copyShared({ version, plans, operators, prices }: SharedRow, cell: Cell): Promise<void> {
  await cell.call("copy_shared_data", version, plans, operators, prices);
}
