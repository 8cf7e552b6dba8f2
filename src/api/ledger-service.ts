import {
  type GetGenerationRequest,
  LedgerService,
  type ListEntriesRequest,
} from "../../gen/vx/v1/ledger_pb.js";
import { readPage } from "../domain/page.ts";
import { listFilteredEntries } from "../store/filtered-entries.ts";
import { getGeneration as getGenerationRow } from "../store/ledger.ts";
import type { ApiCall } from "./api-call.ts";
import { defineService } from "./define-service.ts";
import type { Deps } from "./deps.ts";
import { entryFilterOf } from "./entry-filter.ts";
import { viewEntry } from "./views.ts";

export async function listEntries(deps: Deps, request: ListEntriesRequest, call: ApiCall) {
  const { rows, nextPageToken } = await listFilteredEntries(
    deps.database,
    call.key.accountId,
    entryFilterOf(request),
    readPage("entries", request),
  );
  return { entries: rows.map(viewEntry), nextPageToken };
}

export async function getGeneration(deps: Deps, { id }: GetGenerationRequest, call: ApiCall) {
  return { entry: viewEntry(await getGenerationRow(deps.database, call.key.accountId, id)) };
}

export const ledgerService = defineService(LedgerService, ({ deps }) => ({
  listEntries: (request, call) => listEntries(deps, request, call),
  getGeneration: (request, call) => getGeneration(deps, request, call),
}));
