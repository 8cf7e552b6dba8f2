import { setTimeout as wait } from "node:timers/promises";
import * as sql from "../../../gen/sql/calls.ts";
import { DomainError } from "../../domain/errors.ts";
import { LANE_COUNT, type Lane, lanesOfText } from "../../domain/lane.ts";
import type { Cell } from "../driver/cells.ts";
import { LaneMoved, NotSent } from "../driver/store-error.ts";

/** A move of lanes takes less than two seconds, so that calls wait for it and do not fail. */
const MAX_RESENDING_MS = 5_000;
const PAUSE_MS = 100;
/** A cell that does not respond delays the calls that wait for an owner by this time. */
const MAX_READING_MS = 500;

type DirectoryCell = {
  readonly name: string;
  /** A pool without slow statements. */
  readonly pool: Cell;
  /** The lanes of the cell until it can be reached for the first time. */
  readonly assumedLanes: readonly Lane[];
  /** Called before the first use of the cell. */
  readonly prepare: () => Promise<unknown>;
};

/** Which cell owns each lane, and which cells can be used. Copies what all share from the first cell. */
export class CellDirectory {
  readonly #cells: DirectoryCell[];
  readonly #onOwners: (unowned: number) => void;
  readonly #map: LaneMap;
  readonly #prepared = new Set<number>();
  /** A cell counts as usable until a check of it fails. */
  readonly #usable: Set<number>;
  /** Versions of the shared data. */
  readonly #versions = new Map<number, bigint>();
  readonly #readings = new Map<number, Promise<void>>();

  /** @param onOwners called after each reading with the number of lanes that have no owner */
  constructor(cells: readonly DirectoryCell[], onOwners: (unowned: number) => void) {
    this.#cells = [...cells];
    this.#onOwners = onOwners;
    this.#usable = new Set(cells.keys());
    this.#map = new LaneMap(cells.map(({ assumedLanes }) => assumedLanes));
  }

  /** Adds a cell, which can be used after `maintain`. Returns its index. */
  append(cell: DirectoryCell): number {
    this.#map.append();
    return this.#cells.push(cell) - 1;
  }

  /** The cells whose calls are refused. */
  get excluded(): string[] {
    return this.#cells.flatMap(({ name }, cell) => (this.#usable.has(cell) ? [] : [name]));
  }

  get unownedLanes(): Lane[] {
    return this.#map.unowned;
  }

  /** The lanes whose calls are not refused. */
  get usableLanes(): Lane[] {
    const lanes = Array.from(Array(LANE_COUNT).keys());
    return lanes.filter((lane) => this.#usable.has(this.#map.ownerOf(lane) ?? -1));
  }

  nameOf(cell: number): string {
    return this.#cells[cell]?.name ?? "";
  }

  /** The cell of a lane; the first one if it has no owner. */
  cellOf(lane: Lane): number {
    return this.#map.ownerOf(lane) ?? 0;
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
    let deadline: AbortSignal | undefined;
    for (;;) {
      const cell = lane === LANE_COUNT ? 0 : this.#map.ownerOf(lane);
      if (cell !== undefined) {
        this.#requireUsable(cell);
        try {
          return await send(cell);
        } catch (error) {
          if (!(error instanceof LaneMoved) || deadline?.aborted) throw error;
        }
      } else if (deadline?.aborted) {
        throw new DomainError("unavailable", { cause: new Error(`no cell owns lane ${lane}`) });
      }
      if (deadline) await wait(PAUSE_MS);
      // A limit on their number alone would be ten times as long while a cell does not respond.
      deadline ??= AbortSignal.timeout(MAX_RESENDING_MS);
      await this.#readOwners();
    }
  }

  /** Call this when a check of the cell has failed: its calls are refused until `maintain` succeeds. */
  exclude(cell: number): void {
    this.#usable.delete(cell);
  }

  /** Migrates the cell, unless this process has done so. */
  async prepare(cell: number): Promise<void> {
    if (this.#prepared.has(cell)) return;
    await (this.#cells[cell] as DirectoryCell).prepare();
    this.#prepared.add(cell);
  }

  /** Reads the lanes of the cell and copies the shared data to it. Call this periodically while it can be reached. */
  async maintain(cell: number): Promise<void> {
    const { pool } = this.#cells[cell] as DirectoryCell;
    await this.prepare(cell);
    const state = await this.#readState(cell);
    const shared = this.#versions.get(0);
    if (cell !== 0 && shared !== undefined && state.shared_version < shared) {
      await sql.copySharedData(pool, await this.#readShared());
    }
    // At once, so that no call finds an owner that cannot be used yet.
    this.#record(cell, state);
    this.#usable.add(cell);
  }

  /** Copies what the first cell shares to the others. Those that cannot be reached get it before they are used again. */
  async share(): Promise<void> {
    const shared = await this.#readShared();
    this.#versions.set(0, shared.version);
    const others = this.#cells.filter((_, cell) => cell !== 0 && this.#usable.has(cell));
    await Promise.all(others.map(({ pool }) => sql.copySharedData(pool, shared)));
  }

  #requireUsable(cell: number): void {
    if (this.#usable.has(cell)) return;
    const cause = new Error(`the cell "${this.nameOf(cell)}" cannot be used`);
    throw new NotSent(cause);
  }

  /** Reads the owners of the lanes in all cells, among them those that became usable just now. */
  async #readOwners(): Promise<void> {
    const readings = this.#cells.map((_, cell) => this.#readOwner(cell));
    await Promise.race([Promise.all(readings), wait(MAX_READING_MS, undefined, { ref: false })]);
  }

  /** Calls that were refused at the same time share one reading. */
  #readOwner(cell: number): Promise<void> {
    const current = this.#readings.get(cell);
    if (current !== undefined) return current;
    const read = async () => this.#record(cell, await this.#readState(cell));
    const reading = (this.#usable.has(cell) ? read() : this.maintain(cell))
      .catch(() => undefined)
      .finally(() => this.#readings.delete(cell));
    this.#readings.set(cell, reading);
    return reading;
  }

  async #readState(cell: number): Promise<sql.CellStateRow> {
    const { name, pool } = this.#cells[cell] as DirectoryCell;
    const [row] = await sql.cellState(pool);
    if (!row) throw new Error(`the cell "${name}" has no state`);
    if (row.name !== null && row.name !== name) {
      this.#usable.delete(cell);
      throw new Error(`the database of the cell "${name}" is the cell "${row.name}"`);
    }
    return row;
  }

  #record(cell: number, row: sql.CellStateRow): void {
    const epochs = row.epochs.split(",");
    const lanes = lanesOfText(row.lanes);
    this.#map.record(cell, new Map(lanes.map((lane, i) => [lane, BigInt(epochs[i] ?? 0)])));
    this.#versions.set(cell, row.shared_version);
    this.#onOwners(this.#map.unowned.length);
  }

  async #readShared(): Promise<sql.ReadSharedDataRow> {
    const [row] = await sql.readSharedData((this.#cells[0] as DirectoryCell).pool);
    return row as sql.ReadSharedDataRow;
  }
}

/** The epochs of the lanes that a cell owns by its own table. */
type OwnedLanes = ReadonlyMap<Lane, bigint>;

/**
 * The owner of each lane. The tables of the cells decide: a lane that several of them claim belongs to the claim with
 * the highest epoch, and to none if those are equal.
 */
export class LaneMap {
  /** The last known claims of each cell. */
  readonly #claims: OwnedLanes[];
  #owners: readonly (number | undefined)[] = [];

  /** @param assumed lanes of each cell until its table is read */
  constructor(assumed: readonly (readonly Lane[])[]) {
    this.#claims = assumed.map((lanes) => new Map(lanes.map((lane) => [lane, 0n])));
    this.#decide();
  }

  /** Adds a cell whose table was not read. */
  append(): void {
    this.#claims.push(new Map());
  }

  ownerOf(lane: Lane): number | undefined {
    return this.#owners[lane];
  }

  /** The lanes that no cell owns. */
  get unowned(): Lane[] {
    return this.#owners.flatMap((owner, lane) => (owner === undefined ? [lane] : []));
  }

  record(cell: number, lanes: OwnedLanes): void {
    this.#claims[cell] = lanes;
    this.#decide();
  }

  #decide(): void {
    this.#owners = Array.from({ length: LANE_COUNT }, (_, lane) => {
      let owner: number | undefined;
      let highest = -1n;
      for (const [cell, claims] of this.#claims.entries()) {
        const epoch = claims.get(lane) ?? -1n;
        if (epoch === highest) owner = undefined;
        if (epoch > highest) [owner, highest] = [cell, epoch];
      }
      return owner;
    });
  }
}
