import type { FunctionCaller } from "./driver/cells.ts";

type ArchiveRow = { readonly month: number; readonly removed_at: Date | null };

/** The end of the last month whose entries were moved to a file; undefined if the ledger is complete. */
export async function archivedUntil(cell: FunctionCaller): Promise<Date | undefined> {
  const rows = await cell.call<ArchiveRow>("list_archives");
  const last = rows.findLast(({ removed_at }) => removed_at !== null);
  return last && new Date(Date.UTC(1970, last.month + 1));
}
