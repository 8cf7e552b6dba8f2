import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { defineService } from "../api/define-service.ts";
import { readPage } from "../domain/page.ts";
import { dateOf } from "../rules/request-values.ts";
import { type EntryFilter, getGeneration, listFilteredEntries } from "./store.ts";
import { viewEntry } from "./views.ts";

export const ledgerService = defineService(LedgerService, {
  listEntries: async ({ database }, request, { key }) => {
    const page = readPage("entries", request);
    const filter = entryFilterOf(request);
    const { rows, nextPageToken } = await listFilteredEntries(database, key.accountId, filter, page);
    return { entries: rows.map(viewEntry), nextPageToken };
  },
  getGeneration: async ({ database }, { id }, { key }) => ({
    entry: viewEntry(await getGeneration(database, key.accountId, id)),
  }),
});

type FilterFields = Pick<EntryFilter, "kind" | "keyId" | "model"> & {
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
};

export function entryFilterOf({ kind, keyId, model, from, to }: FilterFields): EntryFilter {
  return { kind, keyId, model, from: dateOf("from", from), to: dateOf("to", to) };
}
