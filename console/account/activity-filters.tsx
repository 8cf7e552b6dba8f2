import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { startOfDay } from "../shared/days.ts";
import { DayFilters, type FilterValues, filterValuesOf, SelectFilter } from "../shared/filter-fields.tsx";
import { memberName } from "../shared/member-tables.tsx";
import { useQuery } from "../shared/use-query.ts";
import { ACTIVITY_METHODS } from "./activity-methods.ts";
import type { Viewer } from "./viewer.ts";

const NAMES = ["person", "method", "from", "to"] as const;

export type ActivityFilter = FilterValues<(typeof NAMES)[number]>;

export function activityFilterOf(params: URLSearchParams): ActivityFilter {
  return filterValuesOf(params, NAMES);
}

type ActivityRequest = {
  readonly personId: string;
  readonly method: string;
  readonly from?: Timestamp;
  readonly to?: Timestamp;
};

export function activityRequestOf({ person, method, from, to }: ActivityFilter): ActivityRequest {
  const start = startOfDay(from, 0);
  const end = startOfDay(to, 1);
  return {
    personId: person,
    method,
    ...(start && { from: timestampFromDate(start) }),
    ...(end && { to: timestampFromDate(end) }),
  };
}

type ActivityFiltersProps = { readonly viewer: Viewer; readonly filter: ActivityFilter };

export function ActivityFilters({ viewer, filter }: ActivityFiltersProps) {
  const { data: people = [] } = useQuery(
    async (signal) => {
      const { members } = await viewer.pageService.listMembers({}, { signal });
      return members.map((member) => [member.personId, memberName(member)] as const);
    },
    [viewer.id],
  );
  return (
    <fieldset class="filters">
      <legend class="hidden">Filters</legend>
      <SelectFilter
        label="Person"
        section="activity"
        name="person"
        value={filter.person}
        options={[["", "Everyone"], ...people]}
      />
      <SelectFilter
        label="Action"
        section="activity"
        name="method"
        value={filter.method}
        options={[["", "All actions"], ...ACTIVITY_METHODS]}
      />
      <DayFilters section="activity" from={filter.from} to={filter.to} />
    </fieldset>
  );
}
