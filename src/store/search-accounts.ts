import { laneOfId } from "../domain/lane.ts";
import { joinPosition, type Page, pageUpTo, splitPosition } from "../domain/page.ts";
import type { AccountRow } from "./accounts.ts";
import type { Cells } from "./driver/cells.ts";
import { compareBytes, mergeCells } from "./merge-cells.ts";
import { PIECES, readNameParts } from "./name-parts.ts";

/**
 * The searched fields, in the order of the results: the starts of three fields, each with an index, and parts of names, for
 * which all names are read in order. Accounts with the id come before them.
 */
const FIELDS = ["external_id", "email", "name", "part"] as const;

type FoundRow = AccountRow & { term: string; was_found: boolean };

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
          ? readNameParts<FoundRow & { is_match: boolean }, typeof after>(
              after,
              count,
              pieces,
              (start, read, missing) => cell.call("search_names", text, start.term, start.id, read, missing),
            )
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
