import type { ListLedgerEntriesRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { readPage } from "../../domain/page.ts";
import { getAccount } from "../../store/accounts.ts";
import { listEntries } from "../../store/ledger.ts";
import type { Deps } from "../deps.ts";
import { viewEntry } from "../views.ts";

export async function listLedgerEntries(deps: Deps, request: ListLedgerEntriesRequest) {
  const account = await getAccount(deps.database, request.accountId);
  const { rows, nextPageToken } = await listEntries(deps.database, account.id, readPage("entries", request));
  return { entries: rows.map(viewEntry), nextPageToken };
}
