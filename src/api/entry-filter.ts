import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { EntryFilter } from "../store/filtered-entries.ts";
import { dateOf } from "./date-of.ts";

type FilterFields = Pick<EntryFilter, "kind" | "keyId" | "model"> & {
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
};

/** The filters of a request for ledger entries. */
export function entryFilterOf({ kind, keyId, model, from, to }: FilterFields): EntryFilter {
  return { kind, keyId, model, from: dateOf("from", from), to: dateOf("to", to) };
}
