import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type GetGenerationRequest,
  LedgerService,
  type ListEntriesRequest,
} from "../../gen/vx/v1/ledger_pb.js";
import { readPage } from "../domain/page.ts";
import { type EntryFilter, getGeneration as getGenerationRow, listFilteredEntries } from "../store/ledger.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";
import { dateOf } from "./request-values.ts";
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

type FilterFields = Pick<EntryFilter, "kind" | "keyId" | "model"> & {
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
};

/** The filters of a request for ledger entries. */
export function entryFilterOf({ kind, keyId, model, from, to }: FilterFields): EntryFilter {
  return { kind, keyId, model, from: dateOf("from", from), to: dateOf("to", to) };
}
