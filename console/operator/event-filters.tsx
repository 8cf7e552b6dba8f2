import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { Field } from "../shared/field.tsx";
import { changeParams } from "../shared/use-route.ts";

const NAMES = ["actor", "method", "target", "account", "from", "to"] as const;

/** The filters as they are in the URL; empty if not set. Days are in the zone of the viewer, both included. */
export type EventFilter = Readonly<Record<(typeof NAMES)[number], string>>;

export function eventFilterOf(params: URLSearchParams): EventFilter {
  return Object.fromEntries(NAMES.map((name) => [name, params.get(name) ?? ""])) as EventFilter;
}

/** The methods that change something are in the log. */
const METHODS = [
  ...AdminService.methods.map(({ name }) => name).filter((name) => !/^(Get|List|Audit|Export)/.test(name)),
  "SignIn",
  "SignOut",
].sort();

export function EventFilters({ filter }: { readonly filter: EventFilter }) {
  const set = (name: keyof EventFilter) => (event: Event & { readonly currentTarget: { value: string } }) =>
    changeParams("log", { [name]: event.currentTarget.value.trim() });
  return (
    <fieldset class="filters filters-wide">
      <legend class="hidden">Filters</legend>
      <Field label="Method">
        {(control) => (
          <select {...control} value={filter.method} onChange={set("method")}>
            <option value="">All methods</option>
            {METHODS.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Operator id">
        {(control) => (
          <input {...control} value={filter.actor} maxLength={64} placeholder="Any" onChange={set("actor")} />
        )}
      </Field>
      <Field label="Account id">
        {(control) => (
          <input
            {...control}
            value={filter.account}
            maxLength={64}
            placeholder="Any"
            onChange={set("account")}
          />
        )}
      </Field>
      <Field label="Target">
        {(control) => (
          <input
            {...control}
            value={filter.target}
            maxLength={64}
            placeholder="Any"
            onChange={set("target")}
          />
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
