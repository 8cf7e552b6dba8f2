import type { ComponentChildren } from "preact";
import { Money, numberText } from "./money.tsx";
import { Segmented } from "./segmented.tsx";
import { Stat } from "./stat.tsx";
import { EmptyState, ErrorState, Skeleton } from "./states.tsx";
import type { Group, Measure, Split, SplitUsage } from "./usage.ts";
import { UsageChart } from "./usage-chart.tsx";
import type { Periods } from "./usage-range.tsx";
import { type LoadedUsage, MEASURES, SPLITS, type UsageView } from "./usage-view.ts";

type UsageCardProps = {
  readonly usage: LoadedUsage;
  readonly view: UsageView;
  readonly splits: readonly Split[];
  readonly onChange: (part: Partial<UsageView>) => void;
  /** What to show if there is no usage. */
  readonly emptyTitle: string;
  readonly empty: ComponentChildren;
  readonly onSelect?: ((start: Date) => void) | undefined;
  /** Something between the heading and the chart. */
  readonly children?: ComponentChildren;
};

/** The usage of each day or hour as a chart. */
export function UsageCard(props: UsageCardProps) {
  const { usage, view, splits, onChange, emptyTitle, empty, onSelect, children } = props;
  return (
    <section class="card usage" aria-labelledby="usage" aria-busy={usage.isLoading}>
      <div class="usage-header">
        <h2 id="usage">Usage by {usage.data?.periods.unit ?? "day"}</h2>
        <div class="page-actions">
          <Segmented label="Measure" options={MEASURES} value={view.measure} onChange={(measure) => onChange({ measure })} />
          <Segmented
            label="Split"
            options={splits.map((split) => SPLITS[split])}
            value={view.split}
            onChange={(split) => onChange({ split })}
          />
        </div>
      </div>
      {children}
      {usage.problem ? (
        <ErrorState problem={usage.problem} onRetry={usage.reload} />
      ) : usage.data === undefined ? (
        <Skeleton width="100%" height="20rem" />
      ) : (
        <LoadedChart
          {...usage.data}
          groups={usage.groups}
          measure={view.measure}
          emptyTitle={emptyTitle}
          empty={empty}
          onSelect={onSelect}
        />
      )}
    </section>
  );
}

type LoadedChartProps = Pick<UsageCardProps, "emptyTitle" | "empty" | "onSelect"> & {
  readonly rows: readonly SplitUsage[] | undefined;
  readonly groups: readonly Group[];
  readonly names: ReadonlyMap<string, string>;
  readonly periods: Periods;
  readonly split: Split;
  readonly measure: Measure;
};

function LoadedChart({ rows, emptyTitle, empty, ...chart }: LoadedChartProps) {
  if (rows === undefined) {
    return (
      <EmptyState title="Too much to show">
        <p>Select fewer days, or read the usage with the API.</p>
      </EmptyState>
    );
  }
  if (rows.length > 0) return <UsageChart rows={rows} {...chart} />;
  return <EmptyState title={emptyTitle}>{empty}</EmptyState>;
}

type UsageStatsProps = {
  readonly usage: LoadedUsage;
  /** What the cost is called: "Spent in 30 days". */
  readonly costName: string;
};

/** The sums of the range; nothing if they are not known, which the chart explains. */
export function UsageStats({ usage: { data, problem }, costName }: UsageStatsProps) {
  if (problem || (data && !data.rows)) return null;
  const rows = data?.rows;
  const sum = (value: (row: SplitUsage) => bigint) => rows?.reduce((total, row) => total + value(row), 0n);
  const text = (value: (row: SplitUsage) => bigint) => {
    const total = sum(value);
    return total === undefined ? undefined : numberText(total);
  };
  const cost = sum((row) => row.costMicros);
  return (
    <>
      <Stat label={costName} value={cost === undefined ? undefined : <Money micros={cost} />} />
      <Stat label="Requests" value={text((row) => row.requests)} />
      <Stat
        label="Input tokens"
        value={text((row) => row.inputTokens)}
        note={rows && `${text((row) => row.cachedInputTokens)} from the cache`}
      />
      <Stat
        label="Output tokens"
        value={text((row) => row.outputTokens)}
        note={rows && `${text((row) => row.reasoningTokens)} for reasoning`}
      />
    </>
  );
}
