import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ComponentChildren } from "preact";
import { startOfDay } from "./days.ts";
import { DayFilters, type FilterValues, filterValuesOf, SelectFilter } from "./filter-fields.tsx";

const NAMES = ["kind", "key", "model", "from", "to"] as const;

export type LedgerFilter = FilterValues<(typeof NAMES)[number]>;

/** The fields that the requests of customers and operators share. */
export type LedgerRequest = {
  readonly kind: string;
  readonly keyId: string;
  readonly model: string;
  readonly from?: Timestamp;
  readonly to?: Timestamp;
};

export function filterOf(params: URLSearchParams): LedgerFilter {
  return filterValuesOf(params, NAMES);
}

export function requestOf({ kind, key, model, from, to }: LedgerFilter): LedgerRequest {
  const start = startOfDay(from, 0);
  const end = startOfDay(to, 1);
  return {
    kind,
    keyId: key,
    model,
    ...(start && { from: timestampFromDate(start) }),
    ...(end && { to: timestampFromDate(end) }),
  };
}

/** What a ledger can be filtered by. */
export type LedgerChoices = {
  /** The ids of models. */
  readonly models: readonly string[];
  /** The names of keys by their ids; empty if they cannot be read. */
  readonly keys: ReadonlyMap<string, string>;
};

type LedgerFiltersProps = {
  readonly filter: LedgerFilter;
  readonly choices: LedgerChoices;
  /** The section of the URL that shows the ledger. */
  readonly section: string;
  /** Another filter, before these. */
  readonly children?: ComponentChildren;
};

const KINDS = [
  ["", "All kinds"],
  ["generation", "Generations"],
  ["credit", "Credits"],
  ["topup", "Top-ups"],
  ["expiry", "Expiries"],
  ["refund", "Refunds"],
  ["adjustment", "Adjustments"],
] as const;

export function LedgerFilters({ filter, choices: { models, keys }, section, children }: LedgerFiltersProps) {
  const modelOptions = [["", "All models"], ...models.map((id) => [id, id])] as [string, string][];
  return (
    <fieldset class="filters">
      <legend class="hidden">Filters</legend>
      {children}
      <SelectFilter label="Kind" section={section} name="kind" value={filter.kind} options={KINDS} />
      <SelectFilter label="Model" section={section} name="model" value={filter.model} options={modelOptions} />
      {(keys.size > 0 || filter.key !== "") && (
        <SelectFilter label="Key" section={section} name="key" value={filter.key} options={[["", "All keys"], ...keys]} />
      )}
      <DayFilters section={section} from={filter.from} to={filter.to} />
    </fieldset>
  );
}
