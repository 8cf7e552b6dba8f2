import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { startOfDay } from "./days.ts";
import { DayFilters, type FilterValues, filterValuesOf, SelectFilter, TextFilter } from "./filter-fields.tsx";

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

type LedgerFiltersProps = {
  readonly filter: LedgerFilter;
  /** The section of the URL that shows the ledger. */
  readonly section: string;
};

const KINDS = [
  ["", "All kinds"],
  ["generation", "Generations"],
  ["credit", "Credits"],
  ["adjustment", "Adjustments"],
] as const;

export function LedgerFilters({ filter, section }: LedgerFiltersProps) {
  return (
    <fieldset class="filters">
      <legend class="hidden">Filters</legend>
      <SelectFilter label="Kind" section={section} name="kind" value={filter.kind} options={KINDS} />
      <TextFilter label="Model" section={section} name="model" value={filter.model} maxLength={200} />
      <TextFilter label="Key id" section={section} name="key" value={filter.key} maxLength={64} />
      <DayFilters section={section} from={filter.from} to={filter.to} />
    </fieldset>
  );
}
