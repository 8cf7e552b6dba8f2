import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import {
  DayFilters,
  type FilterValues,
  filterValuesOf,
  SelectFilter,
  TextFilter,
} from "../shared/filter-fields.tsx";

const NAMES = ["actor", "method", "target", "account", "from", "to"] as const;

export type EventFilter = FilterValues<(typeof NAMES)[number]>;

export function eventFilterOf(params: URLSearchParams): EventFilter {
  return filterValuesOf(params, NAMES);
}

/** The methods that change something are in the log. */
const METHODS = [
  ...AdminService.methods
    .map(({ name }) => name)
    .filter((name) => !/^(Get|List|Search|Audit|Export)/.test(name)),
  "SignIn",
  "SignOut",
].sort();

export function EventFilters({ filter }: { readonly filter: EventFilter }) {
  const filterOf = (name: keyof EventFilter) => ({ section: "log", name, value: filter[name] });
  return (
    <fieldset class="filters filters-wide">
      <legend class="hidden">Filters</legend>
      <SelectFilter
        {...filterOf("method")}
        label="Method"
        options={[["", "All methods"], ...METHODS.map((name) => [name, name] as const)]}
      />
      <TextFilter {...filterOf("actor")} label="Operator id" maxLength={64} />
      <TextFilter {...filterOf("account")} label="Account id" maxLength={64} />
      <TextFilter {...filterOf("target")} label="Target" maxLength={64} />
      <DayFilters section="log" from={filter.from} to={filter.to} />
    </fieldset>
  );
}
