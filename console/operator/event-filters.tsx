import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { DayFilters, type FilterValues, filterValuesOf, SelectFilter } from "../shared/filter-fields.tsx";
import { LOGGED_METHODS } from "../shared/member-methods.ts";
import { changesOf, methodOptions } from "../shared/method-text.ts";
import { useQuery } from "../shared/use-query.ts";
import { AccountFilter } from "./account-filter.tsx";
import { useApi } from "./operator-session.ts";

const NAMES = ["actor", "method", "target", "account", "from", "to"] as const;

export type EventFilter = FilterValues<(typeof NAMES)[number]>;

export function eventFilterOf(params: URLSearchParams): EventFilter {
  return filterValuesOf(params, NAMES);
}

const METHODS = methodOptions([...changesOf(AdminService), ...LOGGED_METHODS, "SignIn", "SignOut"]);

type Option = readonly [value: string, text: string];

/** Actors that are no operators of the list. */
const OTHER_ACTORS: readonly Option[] = [
  ["break-glass", "Holder of VX_ADMIN_TOKEN"],
  ["server", "The server"],
];

const PAGE_SIZE = 1_000;

export function EventFilters({ filter }: { readonly filter: EventFilter }) {
  const { operators, targets } = useChoices(filter.account);
  const filterOf = (name: keyof EventFilter) => ({ section: "log", name, value: filter[name] });
  return (
    <fieldset class="filters filters-wide">
      <legend class="hidden">Filters</legend>
      <SelectFilter {...filterOf("method")} label="Action" options={[["", "All actions"], ...METHODS]} />
      <SelectFilter {...filterOf("actor")} label="Operator" options={[["", "All operators"], ...operators, ...OTHER_ACTORS]} />
      <AccountFilter section="log" value={filter.account} />
      <SelectFilter {...filterOf("target")} label="Object" options={[["", "All objects"], ...targets]} />
      <DayFilters section="log" from={filter.from} to={filter.to} />
    </fieldset>
  );
}

/** The operators, and what can be changed: plans, operators, and the keys of the selected account. */
function useChoices(accountId: string) {
  const api = useApi();
  const { data } = useQuery(
    async (signal) => {
      const [{ operators }, { plans }, keys] = await Promise.all([
        api.listOperators({ pageSize: PAGE_SIZE }, { signal }),
        api.listPlans({}, { signal }),
        accountId === "" ? [] : api.listKeys({ accountId, pageSize: PAGE_SIZE }, { signal }),
      ]);
      const people = operators.map(({ id, name }): Option => [id, name]);
      const targets = [
        ...("apiKeys" in keys ? keys.apiKeys : []).map(({ id, name }): Option => [id, `Key ${name}`]),
        ...plans.map(({ name }): Option => [name, `Plan ${name}`]),
        ...people.map(([id, name]): Option => [id, `Operator ${name}`]),
      ];
      return { operators: people, targets };
    },
    [accountId],
  );
  return data ?? { operators: [], targets: [] };
}
