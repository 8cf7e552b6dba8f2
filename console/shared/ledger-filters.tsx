import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { startOfDay } from "./days.ts";
import { Field } from "./field.tsx";
import { changeParams } from "./use-route.ts";

/** The filters as they are in the URL; empty if not set. Days are in the zone of the viewer, both included. */
export type LedgerFilter = Readonly<Record<"kind" | "key" | "model" | "from" | "to", string>>;

/** The fields that the requests of customers and operators share. */
export type LedgerRequest = {
  readonly kind: string;
  readonly keyId: string;
  readonly model: string;
  readonly from?: Timestamp;
  readonly to?: Timestamp;
};

export function filterOf(params: URLSearchParams): LedgerFilter {
  const text = (name: string) => params.get(name) ?? "";
  return { kind: text("kind"), key: text("key"), model: text("model"), from: text("from"), to: text("to") };
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

export function LedgerFilters({ filter, section }: LedgerFiltersProps) {
  const set = (name: keyof LedgerFilter) => (event: Event & { readonly currentTarget: { value: string } }) =>
    changeParams(section, { [name]: event.currentTarget.value.trim() });
  return (
    <fieldset class="filters">
      <legend class="hidden">Filters</legend>
      <Field label="Kind">
        {(control) => (
          <select {...control} value={filter.kind} onChange={set("kind")}>
            <option value="">All kinds</option>
            <option value="generation">Generations</option>
            <option value="credit">Credits</option>
            <option value="adjustment">Adjustments</option>
          </select>
        )}
      </Field>
      <Field label="Model">
        {(control) => (
          <input
            {...control}
            value={filter.model}
            maxLength={200}
            placeholder="Any"
            onChange={set("model")}
          />
        )}
      </Field>
      <Field label="Key id">
        {(control) => (
          <input {...control} value={filter.key} maxLength={64} placeholder="Any" onChange={set("key")} />
        )}
      </Field>
      <Field label="From">
        {(control) => (
          <input {...control} type="date" value={filter.from} max={filter.to} onChange={set("from")} />
        )}
      </Field>
      <Field label="Until">
        {(control) => (
          <input {...control} type="date" value={filter.to} min={filter.from} onChange={set("to")} />
        )}
      </Field>
    </fieldset>
  );
}
