import type { Cells } from "./driver/cells.ts";

/** Totals across all servers. */
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

/** Totals across all servers. */
type HoldFigures = { readonly open: number; readonly heldMicros: number; readonly expired: number };

type HoldRow = { readonly holds: bigint; readonly held_micros: bigint; readonly expired: bigint };

export async function readHoldFigures(database: Cells): Promise<HoldFigures> {
  const rows = (await Promise.all(database.all.map((cell) => cell.call<HoldRow>("hold_figures")))).flat();
  const sumOf = (figure: keyof HoldRow) => rows.reduce((sum, row) => sum + Number(row[figure]), 0);
  return { open: sumOf("holds"), heldMicros: sumOf("held_micros"), expired: sumOf("expired") };
}
