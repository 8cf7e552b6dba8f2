import { laneOfId } from "../domain/lane.ts";
import { joinPosition, type Page, pageUpTo, splitPosition } from "../domain/page.ts";
import type { AccountRow } from "./accounts.ts";
import type { Database } from "./driver/database.ts";

/** The searched fields, in the order of the results; each has an index. Accounts with the id come before them. */
const FIELDS = ["external_id", "email", "name"] as const;

type FoundRow = AccountRow & { field: number; term: string; was_found: boolean };

/**
 * A page of the accounts whose id is the text, or whose external id, e-mail address or name starts with it. One statement reads
 * each field, so a page can have fewer accounts than its size if most of them were found by an earlier field.
 */
export async function searchAccounts(database: Database, text: string, page: Page) {
  const [first = 0, afterTerm = "", afterId = ""] = splitPosition(page, 2) ?? [];
  const limit = page.size + 1;
  const rows: (AccountRow & { field: number; term: string })[] = [];
  if (page.after === "") {
    const found = await database.call<AccountRow>("get_account", laneOfId(text), text);
    rows.push(...found.map((row) => ({ ...row, field: 0, term: "" })));
  }
  let stoppedAt: string | undefined;
  for (let field = first; field < FIELDS.length && rows.length < limit && stoppedAt === undefined; field++) {
    const [term, id] = field === first ? [afterTerm, afterId] : ["", ""];
    const name = FIELDS[field] ?? "name";
    const found = await database.call<FoundRow>("search_accounts", name, text, term, id, limit);
    rows.push(...found.filter((row) => !row.was_found).map((row) => ({ ...row, field })));
    const last = found.at(-1);
    if (found.length === limit && last) stoppedAt = joinPosition([field, last.term, last.id]);
  }
  return pageUpTo(rows, page, (row) => joinPosition([row.field, row.term, row.id]), stoppedAt);
}
