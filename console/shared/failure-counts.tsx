import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { CountFailuresResponse } from "../../gen/vx/v1/failure_pb.js";
import { placeInChart, Swatch } from "./bar-chart.tsx";
import { Button } from "./button.tsx";
import { type Column, DataTable } from "./data-table.tsx";
import { FAILURE_TITLES, type FailureFilter } from "./failure-filters.tsx";
import { numberText } from "./money.tsx";
import { ErrorState, Skeleton } from "./states.tsx";
import { isoDay, isoMinute, longTimeText, ZONE } from "./time.tsx";
import { PeriodChart } from "./usage-chart.tsx";
import { periodsOf, rangeOf } from "./usage-range.tsx";
import { useQuery } from "./use-query.ts";
import { changeParams } from "./use-route.ts";

/** Counts the failed calls of one account. */
export type FailureCounter = (
  request: {
    readonly groupBy: string;
    readonly tz: string;
    readonly keyId: string;
    readonly model: string;
    readonly from: Timestamp;
    readonly to: Timestamp;
  },
  options: { readonly signal: AbortSignal },
) => Promise<Pick<CountFailuresResponse, "counts" | "countedFrom">>;

type Count = { readonly id: string; readonly start?: Timestamp | undefined; readonly calls: bigint };

type FailureCountsProps = {
  /** Identifies the account. */
  readonly id: string;
  readonly count: FailureCounter;
  readonly filter: FailureFilter;
  /** The section of the URL that shows the failures. */
  readonly section: string;
};

/** The days that are counted if the filter names none. Servers keep failed calls for as long by default. */
const NORMAL_DAYS = 7;
/** Calls that are not listed have no code. */
const TITLES = new Map([["", "Not listed"], ...Object.entries(FAILURE_TITLES)]);
const callsOf = ({ calls }: Count) => calls;

/** How many calls ended with each error, by day or hour. A choice of one filters the list. */
export function FailureCounts({ id, count, filter, section }: FailureCountsProps) {
  const { key: keyId, model, from, to } = filter;
  const { data, problem, reload } = useQuery(
    async (signal) => {
      const range = rangeOf(new URLSearchParams({ from, to }), NORMAL_DAYS);
      const periods = periodsOf(range);
      const start = timestampFromDate(periods.starts[0] ?? periods.end);
      const end = timestampFromDate(periods.end);
      const request = { groupBy: periods.unit, tz: ZONE, keyId, model, from: start, to: end };
      const { counts, countedFrom } = await count(request, { signal });
      const rows: readonly Count[] = counts.map((one) => ({
        id: one.code,
        start: one.start,
        calls: one.calls,
      }));
      const isCut = countedFrom && timestampDate(countedFrom) > timestampDate(start);
      return { range, periods, rows, groups: sumsOf(rows), since: isCut ? countedFrom : undefined };
    },
    [id, keyId, model, from, to],
  );
  if (problem) return <ErrorState problem={problem} onRetry={reload} />;
  if (data === undefined) return <Skeleton width="100%" height="20rem" />;
  const { range, periods, rows, groups, since } = data;
  if (groups.length === 0) return null;
  const isDivided = periods.starts.length > 1;
  const startText = periods.unit === "hour" ? isoMinute : isoDay;
  const show = (start: Date) => changeParams(section, { from: startText(start), to: isoDay(start) });
  return (
    <section class="card usage" aria-labelledby="failure-counts">
      <div class="usage-header">
        <h2 id="failure-counts">Failed calls by {periods.unit}</h2>
        {range.from > range.to && <Button onClick={() => changeParams(section, { from: range.to })}>Back to the day</Button>}
        {range.from === range.to && (
          <Button onClick={() => changeParams(section, { from: "", to: "" })}>Back to {NORMAL_DAYS} days</Button>
        )}
      </div>
      <p class="muted small">
        {since && `There are too many to count: the chart begins at ${longTimeText(since)}. `}
        {isDivided && `Choose a bar to see its ${periods.unit}.`}
      </p>
      <PeriodChart
        label={`Failed calls by ${periods.unit} and error`}
        rows={rows}
        groups={groups}
        periods={periods}
        names={TITLES}
        measureOf={callsOf}
        onSelect={isDivided ? show : undefined}
      />
      <div class="panel">
        <DataTable
          caption="Failed calls by error"
          columns={columnsOf(groups, filter.code, (code) => changeParams(section, { code }))}
          rows={groups}
          keyOf={(group) => group.id}
        />
      </div>
    </section>
  );
}

/** The sums of each error, the highest first. */
function sumsOf(rows: readonly Count[]): Count[] {
  return [...Map.groupBy(rows, ({ id }) => id)]
    .map(([id, counts]) => ({ id, calls: counts.reduce((sum, { calls }) => sum + calls, 0n) }))
    .sort((one, other) => Number(other.calls - one.calls));
}

function columnsOf(groups: readonly Count[], chosen: string, onChoose: (code: string) => void): readonly Column<Count>[] {
  return [
    {
      header: "Error",
      isRowHeader: true,
      cell: ({ id }) => {
        const place = groups.findIndex((group) => group.id === id);
        const title = TITLES.get(id) ?? id;
        return (
          <>
            {groups.length > 1 && <Swatch index={placeInChart(place, groups.length)} />}{" "}
            {id === "" ? (
              <span class="muted regular">{title}</span>
            ) : (
              <button
                type="button"
                class="link-button"
                aria-pressed={id === chosen}
                onClick={() => onChoose(id === chosen ? "" : id)}
              >
                {title}
              </button>
            )}
          </>
        );
      },
    },
    { header: "Calls", isNumber: true, cell: ({ calls }) => numberText(calls) },
  ];
}
