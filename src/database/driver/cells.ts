import type { Lane } from "../../domain/lane.ts";
import type { Parameter } from "./connection.ts";

/** Calls functions of the schema of one cell. */
export type FunctionCaller = {
  /** Calls the function with the parameters and returns its rows. */
  call<Row>(name: string, ...parameters: Parameter[]): Promise<Row[]>;
};

/** A pool of connections to one cell. */
export type Cell = FunctionCaller & {
  /** Calls the function with the parameter, and keeps the locks that it takes until the work has ended. */
  during<Result>(name: string, parameter: string, work: () => Promise<Result>): Promise<Result>;
  /** Throws unless a new transaction can write. */
  requireWritable(): Promise<void>;
  /** Moves all pools with the same hosts to a primary that was promoted while the old one does not fail. */
  findNewerPrimary(): Promise<void>;
};

/** What reading all rows of every cell needs. */
export type ReadCells = Pick<Cells, "all" | "owns" | "nameOf">;

/**
 * One PostgreSQL, or several cells that share the lanes. A cell is a schema with the tables of its lanes. The code above knows
 * only lanes; this decides where their rows are.
 */
export interface Cells {
  /** The first cell. It has everything that belongs to no account: operators, and the originals of plans and prices. */
  readonly home: Cell;
  readonly all: readonly Cell[];
  /** Calls functions about one lane, in the cell that owns it. */
  at(lane: Lane): FunctionCaller;
  /**
   * The same for batches: `send` gets the index of the cell in `all`. It is called again if that cell refused
   * the lane, before any write, because another cell owns it.
   */
  route<Result>(lane: Lane, send: (cell: number) => Promise<Result>): Promise<Result>;
  /** Whether the lane belongs to this cell of `all`. Another cell may still have old rows of it. */
  owns(cell: number, lane: Lane): boolean;
  /** The name of this cell of `all`; empty if the database is not divided into cells. */
  nameOf(cell: number): string;
  /** Copies plans, operators and prices from the first cell to the others. Call this after changes of them. */
  share(): Promise<void>;
  /** Open connections of all cells. */
  readonly connections: number;
  /** Running and waiting statements of all cells. */
  readonly running: number;
  close(): Promise<void>;
}
