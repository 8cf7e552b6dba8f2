import type { ListLedgerEntriesRequest, ListRecentEntriesRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { accountToRead } from "../accounts/named-account.ts";
import { namesOf } from "../accounts/store.ts";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { readPage } from "../domain/page.ts";
import { entryFilterOf } from "./service.ts";
import { findEntries, listFilteredEntries, listRecentEntries as listRecentEntryRows } from "./store.ts";
import { viewEntry, viewEntryCost } from "./views.ts";

export async function listLedgerEntries(deps: Deps, request: ListLedgerEntriesRequest, call: ApiCall) {
  const account = await accountToRead(deps, call, request.accountId);
  const page = readPage("entries", request);
  const { rows, nextPageToken } = await listFilteredEntries(deps.database, account.id, entryFilterOf(request), page);
  const costs = rows.filter(({ kind }) => kind === "generation").map(viewEntryCost);
  return { entries: rows.map(viewEntry), nextPageToken, costs };
}

export async function listRecentEntries({ database }: Deps, request: ListRecentEntriesRequest) {
  const { rows, nextPageToken } =
    request.id === ""
      ? await listRecentEntryRows(database, readPage("recent_entries", request))
      : { rows: await findEntries(database, request.id), nextPageToken: "" };
  const names = await namesOf(
    database,
    rows.map((row) => row.account_id),
    rows.map((row) => row.key_id),
  );
  const entries = rows.map((row) => ({
    accountId: row.account_id,
    accountName: names.get(row.account_id) ?? "",
    keyName: names.get(row.key_id) ?? "",
    entry: viewEntry(row),
    ...(row.kind === "generation" ? { cost: viewEntryCost(row) } : {}),
  }));
  return { entries, nextPageToken };
}
