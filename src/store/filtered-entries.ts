import { laneOfId } from "../domain/lane.ts";
import { badToken, type Page, pageUpTo } from "../domain/page.ts";
import type { Cells } from "./driver/cells.ts";
import { type EntryRow, listEntries } from "./ledger.ts";

/** Empty texts and undefined times match all entries. */
export type EntryFilter = {
  readonly kind: string;
  readonly keyId: string;
  readonly model: string;
  readonly from: Date | undefined;
  /** Exclusive. */
  readonly to: Date | undefined;
};

/**
 * A statement reads `rows` entries, in a few milliseconds. A page ends after `max` statements, although it may have room for
 * more entries.
 */
const PIECES = { rows: 10_000n, max: 10 };

function isFiltered({ kind, keyId, model, from, to }: EntryFilter): boolean {
  return kind !== "" || keyId !== "" || model !== "" || from !== undefined || to !== undefined;
}

/**
 * A page of the matching entries, newest first. Movements and the entries of a key have indexes. An index for models would
 * make every settlement slower, so other entries are read in pieces, and so are those of a key and a model; a page of
 * these can have fewer entries than its size.
 */
export async function listFilteredEntries(
  database: Cells,
  accountId: string,
  filter: EntryFilter,
  page: Page,
  pieces: typeof PIECES = PIECES,
) {
  if (!isFiltered(filter)) return await listEntries(database, accountId, page);
  if (!/^\d{0,18}$/.test(page.after)) throw badToken();
  const { kind, keyId, model, from, to } = filter;
  const lane = laneOfId(accountId);
  const [range] = await database
    .at(lane)
    .call<{ first_seq: bigint; end_seq: bigint }>("ledger_range", lane, accountId, from ?? null, to ?? null);
  const first = range?.first_seq ?? 1n;
  let end = range?.end_seq ?? 1n;
  if (page.after !== "" && BigInt(page.after) < end) end = BigInt(page.after);
  const isIndexed = kind === "credit" || kind === "adjustment" || (keyId !== "" && model === "");
  const rows: EntryRow[] = [];
  for (let piece = 0; piece < pieces.max && end > first && rows.length <= page.size; piece++) {
    const low: bigint = isIndexed || end - pieces.rows < first ? first : end - pieces.rows;
    const limit = page.size + 1 - rows.length;
    const filters = [kind, keyId, model] as const;
    rows.push(
      ...(await database
        .at(lane)
        .call<EntryRow>("filter_entries", lane, accountId, ...filters, low, end, limit)),
    );
    end = low;
  }
  return pageUpTo(rows, page, (row) => row.seq.toString(), end > first ? end.toString() : undefined);
}
