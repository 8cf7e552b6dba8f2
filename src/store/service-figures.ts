import type { Cells } from "./driver/cells.ts";

/** Figures of all servers that use the database. */
export type ServiceFigures = {
  readonly servers: bigint;
  readonly generations: bigint;
  readonly held_micros: bigint;
};

export async function readServiceFigures(database: Cells): Promise<ServiceFigures> {
  const figures = await Promise.all(database.all.map((cell) => cell.call<ServiceFigures>("service_figures")));
  // Every server is present in every cell.
  return figures.flat().reduce((sum, cell) => ({
    servers: cell.servers > sum.servers ? cell.servers : sum.servers,
    generations: sum.generations + cell.generations,
    held_micros: sum.held_micros + cell.held_micros,
  }));
}
