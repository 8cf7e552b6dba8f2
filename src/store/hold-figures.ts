import type { Database } from "./driver/database.ts";

/** Of all servers that use the database. */
export type HoldFigures = { readonly open: number; readonly heldMicros: number; readonly expired: number };

type HoldRow = { readonly holds: bigint; readonly held_micros: bigint; readonly expired: bigint };

export async function readHoldFigures(database: Database): Promise<HoldFigures> {
  const [row] = (await database.call<HoldRow>("hold_figures")) as [HoldRow];
  return { open: Number(row.holds), heldMicros: Number(row.held_micros), expired: Number(row.expired) };
}
