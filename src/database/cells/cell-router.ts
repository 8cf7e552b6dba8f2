import type { Lane } from "../../domain/lane.ts";
import type { Cells, FunctionCaller } from "../driver/cells.ts";
import type { Parameter } from "../driver/connection.ts";
import type { Database } from "../driver/database.ts";
import type { CellDirectory } from "./cell-directory.ts";

export class CellRouter implements Cells {
  readonly #pools: Database[];
  readonly #directory: CellDirectory;

  /** The pools are in the order of the cells of the directory. */
  constructor(pools: readonly Database[], directory: CellDirectory) {
    this.#pools = [...pools];
    this.#directory = directory;
  }

  get all(): readonly Database[] {
    return this.#pools;
  }

  /** Adds the pool of a cell that was appended to the directory. */
  append(pool: Database): void {
    this.#pools.push(pool);
  }

  get home(): Database {
    return this.all[0] as Database;
  }

  get connections(): number {
    return this.all.reduce((sum, pool) => sum + pool.connections, 0);
  }

  get running(): number {
    return this.all.reduce((sum, pool) => sum + pool.running, 0);
  }

  at(lane: Lane): FunctionCaller {
    return {
      call: <Row>(name: string, ...parameters: Parameter[]) =>
        this.route(lane, (cell) => (this.all[cell] as Database).call<Row>(name, ...parameters)),
    };
  }

  route<Result>(lane: Lane, send: (cell: number) => Promise<Result>): Promise<Result> {
    return this.#directory.route(lane, send);
  }

  owns(cell: number, lane: Lane): boolean {
    return this.#directory.owns(cell, lane);
  }

  nameOf(cell: number): string {
    return this.#directory.nameOf(cell);
  }

  share(): Promise<void> {
    return this.#directory.share();
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((pool) => pool.close()));
  }
}
