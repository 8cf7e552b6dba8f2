import type { ComponentChildren } from "preact";
import { Segmented } from "../shared/segmented.tsx";
import { Stats } from "../shared/stat.tsx";
import { ZoneNote } from "../shared/time.tsx";
import type { Split } from "../shared/usage.ts";
import { UsageCard, UsageStats } from "../shared/usage-card.tsx";
import { UsageSums } from "../shared/usage-sums.tsx";
import { RANGES, type UsageView, usageViewOf, useUsage } from "../shared/usage-view.ts";
import { changeParams } from "../shared/use-route.ts";
import { accountHref, keyHref } from "./links.ts";
import { MarginTable } from "./margin-table.tsx";
import { useApi } from "./operator-session.ts";
import { usageOf } from "./usage-source.ts";

type UsageReportProps = {
  /** Empty for all accounts together. */
  readonly accountId: string;
  readonly splits: readonly [Split, ...Split[]];
  /** The section of the URL that shows the report, and what the URL selects in it. */
  readonly section: string;
  readonly params: URLSearchParams;
  /** What the cost is called. */
  readonly costName: string;
  /** The heading, with the choice of the range in it. */
  readonly children: (range: ComponentChildren) => ComponentChildren;
};

/** The pages of what the usage is divided by. */
const HREFS = { account: accountHref, key: keyHref } as const;

/** The cost, requests and tokens of the last days. */
export function UsageReport({ accountId, splits, section, params, costName, children }: UsageReportProps) {
  const view = usageViewOf(params, splits);
  const usage = useUsage(usageOf(useApi(), accountId), view, accountId);
  const show = (part: Partial<UsageView>) => changeParams(section, part);
  return (
    <>
      {children(
        <Segmented label="Range" options={RANGES} value={view.range} onChange={(range) => show({ range })} />,
      )}
      <Stats>
        <UsageStats usage={usage} range={view.range} costName={costName} />
      </Stats>
      <UsageCard
        usage={usage}
        view={view}
        splits={splits}
        onChange={show}
        empty={<p>Charged calls appear here at once.</p>}
      />
      {usage.data?.rows && usage.groups.length > 0 && (
        <UsageSums
          {...usage.data}
          rows={usage.data.rows}
          groups={usage.groups}
          {...(usage.data.split !== "model" && { hrefOf: HREFS[usage.data.split] })}
        />
      )}
      <MarginTable accountId={accountId} days={Number(view.range)} />
      <ZoneNote />
    </>
  );
}
