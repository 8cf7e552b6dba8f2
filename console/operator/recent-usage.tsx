import type { Split } from "../shared/usage.ts";
import { UsageCard } from "../shared/usage-card.tsx";
import { lastDays } from "../shared/usage-range.tsx";
import { usageViewOf, useUsage } from "../shared/usage-view.ts";
import { changeParams } from "../shared/use-route.ts";
import { useApi } from "./operator-session.ts";
import { usageOf } from "./usage-source.ts";

type RecentUsageProps = {
  /** Empty for all accounts together. */
  readonly accountId: string;
  readonly splits: readonly [Split, ...Split[]];
  /** The section of the URL that shows the chart, and what the URL selects in it. */
  readonly section: string;
  readonly params: URLSearchParams;
};

/** The chart of the last days, on a page that shows more than the usage. */
export function RecentUsage({ accountId, splits, section, params }: RecentUsageProps) {
  const view = usageViewOf(params, splits);
  const usage = useUsage(usageOf(useApi(), accountId), view, accountId, lastDays(Number(view.range)));
  return (
    <UsageCard
      usage={usage}
      view={view}
      splits={splits}
      onChange={(part) => changeParams(section, part)}
      emptyTitle={`No usage in the last ${view.range} days`}
      empty={<p>Charged calls appear here at once.</p>}
    />
  );
}
