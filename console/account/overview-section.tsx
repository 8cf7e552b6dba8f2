import { useMemo } from "preact/hooks";
import type { UsageRow } from "../../gen/vx/v1/usage_pb.js";
import { Button } from "../shared/button.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { Segmented } from "../shared/segmented.tsx";
import { Stat, Stats } from "../shared/stat.tsx";
import { EmptyState, ErrorState, Skeleton } from "../shared/states.tsx";
import { ZoneNote } from "../shared/time.tsx";
import { useQuery } from "../shared/use-query.ts";
import { changeParams } from "../shared/use-route.ts";
import { type Group, groupsOf, lastDays, loadUsage, type Measure, type Split } from "./usage.ts";
import { UsageChart } from "./usage-chart.tsx";
import { UsageSums } from "./usage-sums.tsx";
import type { Viewer } from "./viewer.ts";

const RANGES = [
  { value: "7", text: "7 days" },
  { value: "30", text: "30 days" },
  { value: "90", text: "90 days" },
] as const;

const SPLITS = [
  { value: "model", text: "By model" },
  { value: "key", text: "By key" },
] as const;

const MEASURES = [
  { value: "cost", text: "Cost" },
  { value: "requests", text: "Requests" },
  { value: "tokens", text: "Tokens" },
] as const;

/** What is shown, as it is in the URL. */
type View = {
  readonly range: (typeof RANGES)[number]["value"];
  readonly split: Split;
  readonly measure: Measure;
};

function viewOf(params: URLSearchParams): View {
  const choice = <Value extends string>(name: string, options: readonly { value: Value }[], normal: Value) =>
    options.find(({ value }) => value === params.get(name))?.value ?? normal;
  return {
    range: choice("range", RANGES, "30"),
    split: choice("split", SPLITS, "model"),
    measure: choice("measure", MEASURES, "cost"),
  };
}

type OverviewProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** The balance, and the usage of the last days. */
export function OverviewSection({ viewer, params }: OverviewProps) {
  const view = viewOf(params);
  const days = useMemo(() => lastDays(Number(view.range), new Date()), [view.range]);
  const usage = useQuery(
    async (signal) => {
      const [first = new Date()] = days;
      const names = view.split === "key" ? await viewer.keyNames() : new Map<string, string>();
      const [me, rows] = await Promise.all([
        viewer.meService.getMe({}, { signal }),
        loadUsage(viewer, view.split, first, signal),
      ]);
      return { me, rows, names, days, split: view.split };
    },
    [view.split, days],
  );
  const groups = useMemo(
    () => groupsOf(usage.data?.rows ?? [], usage.data?.split ?? view.split, view.measure),
    [usage.data, view.measure],
  );
  const show = (part: Partial<View>) => changeParams("overview", part);
  return (
    <>
      <PageHeader title="Overview">
        <Segmented label="Range" options={RANGES} value={view.range} onChange={(range) => show({ range })} />
        <Button onClick={usage.reload} disabled={usage.isLoading}>
          Refresh
        </Button>
      </PageHeader>
      <Figures
        balance={(usage.data?.me ?? viewer.me).balanceMicros}
        plan={viewer.me.plan}
        rpm={viewer.me.rateLimitRpm}
        rows={usage.problem ? [] : usage.data?.rows}
        range={view.range}
      />
      <section class="card usage" aria-labelledby="usage" aria-busy={usage.isLoading}>
        <div class="usage-header">
          <h2 id="usage">Usage by day</h2>
          <div class="page-actions">
            <Segmented
              label="Measure"
              options={MEASURES}
              value={view.measure}
              onChange={(measure) => show({ measure })}
            />
            <Segmented
              label="Split"
              options={SPLITS}
              value={view.split}
              onChange={(split) => show({ split })}
            />
          </div>
        </div>
        {usage.problem ? (
          <ErrorState problem={usage.problem} onRetry={usage.reload} />
        ) : usage.data === undefined ? (
          <Skeleton width="100%" height="20rem" />
        ) : (
          <UsageOfDays {...usage.data} groups={groups} measure={view.measure} />
        )}
      </section>
      {usage.data?.rows && groups.length > 0 && (
        <UsageSums {...usage.data} rows={usage.data.rows} groups={groups} />
      )}
      <ZoneNote />
    </>
  );
}

type FiguresProps = {
  readonly balance: bigint;
  readonly plan: string;
  readonly rpm: number;
  readonly rows: readonly UsageRow[] | undefined;
  readonly range: string;
};

function Figures({ balance, plan, rpm, rows, range }: FiguresProps) {
  const sum = (value: (row: UsageRow) => bigint) => rows?.reduce((total, row) => total + value(row), 0n);
  const cost = sum((row) => row.costMicros);
  const requests = sum((row) => row.requests);
  const input = sum((row) => row.inputTokens);
  const output = sum((row) => row.outputTokens);
  return (
    <Stats>
      <Stat
        label="Balance"
        value={<Money micros={balance} />}
        note={`Plan “${plan}”, ${numberText(rpm)} calls per minute`}
      />
      <Stat label={`Spent in ${range} days`} value={cost !== undefined && <Money micros={cost} />} />
      <Stat label="Requests" value={requests !== undefined && numberText(requests)} />
      <Stat
        label="Tokens"
        value={input !== undefined && output !== undefined && numberText(input + output)}
        note={
          input !== undefined && output !== undefined && `${numberText(input)} in, ${numberText(output)} out`
        }
      />
    </Stats>
  );
}

type UsageOfDaysProps = {
  readonly rows: readonly UsageRow[] | undefined;
  readonly groups: readonly Group[];
  readonly names: ReadonlyMap<string, string>;
  readonly days: readonly Date[];
  readonly split: Split;
  readonly measure: Measure;
};

function UsageOfDays({ rows, ...chart }: UsageOfDaysProps) {
  if (rows === undefined) {
    return (
      <EmptyState title="Too much to show">
        <p>Select fewer days, or read the usage with the API: GET /v1/usage.</p>
      </EmptyState>
    );
  }
  if (rows.length > 0) return <UsageChart rows={rows} {...chart} />;
  return (
    <EmptyState title={`No usage in the last ${chart.days.length} days`}>
      <p>
        Charged calls appear here at once. <a href="/">See how to make a call</a>
      </p>
    </EmptyState>
  );
}
