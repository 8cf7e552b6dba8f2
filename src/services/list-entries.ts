import type { ListEntriesRequest } from "../../gen/vx/v1/ledger_pb.js";
import { readPage } from "../domain/page.ts";
import { type Call, callingKey } from "../gate/call.ts";
import { listEntries as listEntryRows } from "../store/ledger.ts";
import type { Deps } from "./deps.ts";
import { viewEntry } from "./views.ts";

export async function listEntries(deps: Deps, request: ListEntriesRequest, call: Call) {
  const { rows, nextPageToken } = await listEntryRows(
    deps.database,
    callingKey(call).accountId,
    readPage("entries", request),
  );
  return { entries: rows.map(viewEntry), nextPageToken };
}
