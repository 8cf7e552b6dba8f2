import { laneOfId } from "../domain/lane.ts";
import { joinPosition, type Page, pageUpTo, splitPosition } from "../domain/page.ts";
import type { AccountRow } from "./accounts.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";
import { compareBytes, mergeCells } from "./merge-cells.ts";

/**
 * The searched fields, in the order of the results: the starts of three fields, each with an index, and parts of names, for
 * which all names are read in order. Accounts with the id come before them.
 */
const FIELDS = ["external_id", "email", "name", "part"] as const;

type FoundRow = AccountRow & { term: string; was_found: boolean };

/**
 * A statement reads `rows` names in some milliseconds, so that no other statement waits long for its cell. A search reads the
 * names of a million accounts of each cell at most.
 */
const PIECES = { rows: 10_000, max: 100 };

/**
 * A page of the accounts whose id is the text, whose external id, e-mail address or name starts with it, or whose name contains
 * it. A page can have fewer accounts than its size if most of them were found by an earlier field.
 */
export async function searchAccounts(database: Cells, text: string, page: Page, pieces = PIECES) {
  const [first = 0, afterTerm = "", afterId = ""] = splitPosition(page, 2) ?? [];
  const limit = page.size + 1;
  const rows: (AccountRow & { field: number; term: string })[] = [];
  if (page.after === "") {
    const lane = laneOfId(text);
    const found = await database.at(lane).call<AccountRow>("get_account", lane, text);
    rows.push(...found.map((row) => ({ ...row, field: 0, term: "" })));
  }
  let stoppedAt: string | undefined;
  for (let field = first; field < FIELDS.length && rows.length < limit && stoppedAt === undefined; field++) {
    const [term, id] = field === first ? [afterTerm, afterId] : ["", ""];
    const name = FIELDS[field] ?? "name";
    const found = await mergeCells<FoundRow>(database, limit, {
      read: (cell, last, count) => {
        const after = last ?? { term, id };
        return name === "part"
          ? readParts(cell, text, after, count, pieces)
          : cell.call("search_accounts", name, text, after.term, after.id, count);
      },
      compare: (one, other) => compareBytes(one.term, other.term) || compareBytes(one.id, other.id),
      laneOf: (row) => laneOfId(row.id),
    });
    rows.push(...found.filter((row) => !row.was_found).map((row) => ({ ...row, field })));
    const last = found.at(-1);
    if (found.length === limit && last) stoppedAt = joinPosition([field, last.term, last.id]);
  }
  return pageUpTo(rows, page, (row) => joinPosition([row.field, row.term, row.id]), stoppedAt);
}

/** The accounts of a cell whose name contains the text after its start. */
async function readParts(
  cell: FunctionCaller,
  text: string,
  start: Pick<FoundRow, "term" | "id">,
  limit: number,
  pieces: typeof PIECES,
): Promise<FoundRow[]> {
  const found: FoundRow[] = [];
  let { term, id } = start;
  for (let piece = 0; piece < pieces.max && found.length < limit; piece++) {
    type Row = FoundRow & { is_match: boolean };
    const missing = limit - found.length;
    const rows = await cell.call<Row>("search_names", text, term, id, pieces.rows, missing);
    const last = rows.at(-1);
    if (!last) break;
    found.push(...rows.filter((row) => row.is_match));
    ({ term, id } = last);
  }
  return found;
}
