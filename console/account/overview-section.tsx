import { Button } from "../shared/button.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { Segmented } from "../shared/segmented.tsx";
import { Stat, Stats } from "../shared/stat.tsx";
import { ZoneNote } from "../shared/time.tsx";
import { UsageCard, UsageStats } from "../shared/usage-card.tsx";
import { UsageSums } from "../shared/usage-sums.tsx";
import { RANGES, type UsageView, usageViewOf, useUsage } from "../shared/usage-view.ts";
import { useQuery } from "../shared/use-query.ts";
import { changeParams } from "../shared/use-route.ts";
import { usageOf, type Viewer } from "./viewer.ts";

const SPLITS = ["model", "key"] as const;

type OverviewProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** The balance, and the usage of the last days. */
export function OverviewSection({ viewer, params }: OverviewProps) {
  const view = usageViewOf(params, SPLITS);
  const usage = useUsage(usageOf(viewer), view, "");
  // The balance is read again with the usage.
  const { data: me = viewer.me } = useQuery((signal) => viewer.meService.getMe({}, { signal }), [usage.data]);
  const show = (part: Partial<UsageView>) => changeParams("overview", part);
  return (
    <>
      <PageHeader title="Overview">
        <Segmented label="Range" options={RANGES} value={view.range} onChange={(range) => show({ range })} />
        <Button onClick={usage.reload} disabled={usage.isLoading}>
          Refresh
        </Button>
      </PageHeader>
      <Stats>
        <Stat
          label="Balance"
          value={<Money micros={me.balanceMicros} />}
          note={`Plan “${viewer.me.plan}”, ${numberText(viewer.me.rateLimitRpm)} calls per minute`}
        />
        <UsageStats usage={usage} range={view.range} costName="Spent" />
      </Stats>
      <UsageCard
        usage={usage}
        view={view}
        splits={SPLITS}
        onChange={show}
        empty={
          <p>
            Charged calls appear here at once. <a href="/">See how to make a call</a>
          </p>
        }
      />
      {usage.data?.rows && usage.groups.length > 0 && (
        <UsageSums {...usage.data} rows={usage.data.rows} groups={usage.groups} />
      )}
      <ZoneNote />
    </>
  );
}
