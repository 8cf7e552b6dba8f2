import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ListEntriesRequestSchema } from "../../gen/vx/v1/ledger_pb.js";
import { Field } from "../shared/field.tsx";
import { changeParams } from "../shared/use-route.ts";

/** The filters as they are in the URL; empty if not set. Days are in the zone of the viewer, both included. */
export type LedgerFilter = Readonly<Record<"kind" | "key" | "model" | "from" | "to", string>>;

export type LedgerRequest = MessageInitShape<typeof ListEntriesRequestSchema>;

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

/** The start of the day in the zone of the viewer, some days later; undefined without a valid day. */
function startOfDay(day: string, later: number): Date | undefined {
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day) ?? [];
  return year === undefined ? undefined : new Date(Number(year), Number(month) - 1, Number(date) + later);
}

export function LedgerFilters({ filter }: { readonly filter: LedgerFilter }) {
  const set = (name: keyof LedgerFilter) => (event: Event & { readonly currentTarget: { value: string } }) =>
    changeParams("ledger", { [name]: event.currentTarget.value.trim() });
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
