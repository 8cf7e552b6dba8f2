import type { ComponentChildren } from "preact";
import { Money, numberText } from "./money.tsx";
import { Segmented } from "./segmented.tsx";
import { Stat } from "./stat.tsx";
import { EmptyState, ErrorState, Skeleton } from "./states.tsx";
import type { Group, Measure, Split, SplitUsage } from "./usage.ts";
import { UsageChart } from "./usage-chart.tsx";
import { type LoadedUsage, MEASURES, SPLITS, type UsageView } from "./usage-view.ts";

type UsageCardProps = {
  readonly usage: LoadedUsage;
  readonly view: UsageView;
  readonly splits: readonly Split[];
  readonly onChange: (part: Partial<UsageView>) => void;
  /** What to do if there is no usage. */
  readonly empty: ComponentChildren;
};

/** The usage of each day as a chart. */
export function UsageCard({ usage, view, splits, onChange, empty }: UsageCardProps) {
  return (
    <section class="card usage" aria-labelledby="usage" aria-busy={usage.isLoading}>
      <div class="usage-header">
        <h2 id="usage">Usage by day</h2>
        <div class="page-actions">
          <Segmented
            label="Measure"
            options={MEASURES}
            value={view.measure}
            onChange={(measure) => onChange({ measure })}
          />
          <Segmented
            label="Split"
            options={splits.map((split) => SPLITS[split])}
            value={view.split}
            onChange={(split) => onChange({ split })}
          />
        </div>
      </div>
      {usage.problem ? (
        <ErrorState problem={usage.problem} onRetry={usage.reload} />
      ) : usage.data === undefined ? (
        <Skeleton width="100%" height="20rem" />
      ) : (
        <UsageOfDays {...usage.data} groups={usage.groups} measure={view.measure} empty={empty} />
      )}
    </section>
  );
}

type UsageOfDaysProps = {
  readonly rows: readonly SplitUsage[] | undefined;
  readonly groups: readonly Group[];
  readonly names: ReadonlyMap<string, string>;
  readonly days: readonly Date[];
  readonly split: Split;
  readonly measure: Measure;
  readonly empty: ComponentChildren;
};

function UsageOfDays({ rows, empty, ...chart }: UsageOfDaysProps) {
  if (rows === undefined) {
    return (
      <EmptyState title="Too much to show">
        <p>Select fewer days, or read the usage with the API.</p>
      </EmptyState>
    );
  }
  if (rows.length > 0) return <UsageChart rows={rows} {...chart} />;
  return <EmptyState title={`No usage in the last ${chart.days.length} days`}>{empty}</EmptyState>;
}

type UsageStatsProps = {
  readonly usage: LoadedUsage;
  readonly range: string;
  /** What the cost is called: "Spent". */
  readonly costName: string;
};

/** The sums of the range. */
export function UsageStats({ usage, range, costName }: UsageStatsProps) {
  const rows = usage.problem ? [] : usage.data?.rows;
  const sum = (value: (row: SplitUsage) => bigint) => rows?.reduce((total, row) => total + value(row), 0n);
  const cost = sum((row) => row.costMicros);
  const requests = sum((row) => row.requests);
  const input = sum((row) => row.inputTokens);
  const output = sum((row) => row.outputTokens);
  return (
    <>
      <Stat
        label={`${costName} in ${range} days`}
        value={cost === undefined ? undefined : <Money micros={cost} />}
      />
      <Stat label="Requests" value={requests === undefined ? undefined : numberText(requests)} />
      <Stat
        label="Tokens"
        value={input === undefined || output === undefined ? undefined : numberText(input + output)}
        note={
          input !== undefined && output !== undefined && `${numberText(input)} in, ${numberText(output)} out`
        }
      />
    </>
  );
}
