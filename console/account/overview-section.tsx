import { Button } from "../shared/button.tsx";
import { Credits } from "../shared/credits.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, moneyText, numberText } from "../shared/money.tsx";
import { Segmented } from "../shared/segmented.tsx";
import { Stat, Stats } from "../shared/stat.tsx";
import { ZoneNote } from "../shared/time.tsx";
import { UsageCard, UsageStats } from "../shared/usage-card.tsx";
import { lastDays } from "../shared/usage-range.tsx";
import { UsageSums } from "../shared/usage-sums.tsx";
import { RANGES, type UsageView, usageViewOf, useUsage } from "../shared/usage-view.ts";
import { useQuery } from "../shared/use-query.ts";
import { changeParams } from "../shared/use-route.ts";
import { FirstKey } from "./first-key.tsx";
import { ADD_CREDIT } from "./payments-section.tsx";
import { Spending } from "./spending.tsx";
import { usageOf, type Viewer } from "./viewer.ts";

const SPLITS = ["model", "key"] as const;

type OverviewProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** The balance, and the usage of the last days. */
export function OverviewSection({ viewer, params }: OverviewProps) {
  const view = usageViewOf(params, SPLITS);
  const usage = useUsage(usageOf(viewer), view, "", lastDays(Number(view.range)));
  // The balance is read again with the usage.
  const { data: account = viewer.account } = useQuery(
    async (signal) => viewer.account && (await viewer.accountService.getAccount({}, { signal })),
    [usage.data],
  );
  const show = (part: Partial<UsageView>) => changeParams("overview", part);
  return (
    <>
      <PageHeader title="Overview">
        <Segmented label="Range" options={RANGES} value={view.range} onChange={(range) => show({ range })} />
        <Button onClick={usage.reload} disabled={usage.isLoading}>
          Refresh
        </Button>
        {viewer.canPay && viewer.canBill && (
          <a class="button button-primary" href={ADD_CREDIT}>
            Add credit
          </a>
        )}
      </PageHeader>
      {viewer.membership && <FirstKey viewer={viewer} />}
      <Stats>
        <Stat
          label="Balance"
          value={<Money micros={account?.balanceMicros ?? viewer.me?.balanceMicros ?? 0n} />}
          note={planText(viewer)}
        />
        {account && (
          <>
            <Stat
              label="Available"
              value={<Money micros={account.availableMicros} />}
              note={`${moneyText(account.heldMicros)} held by running calls`}
            />
            <Spending viewer={viewer} availableMicros={account.availableMicros} version={usage.data} />
          </>
        )}
      </Stats>
      <Credits grants={account?.grants ?? []} />
      <Stats>
        <UsageStats usage={usage} costName={`Spent in ${view.range} days`} />
      </Stats>
      <UsageCard
        usage={usage}
        view={view}
        splits={SPLITS}
        onChange={show}
        emptyTitle={`No usage in the last ${view.range} days`}
        empty={
          <p>
            Charged calls appear here at once. <a href="/">See how to make a call</a>
          </p>
        }
      />
      {!usage.problem && usage.data?.rows && usage.groups.length > 0 && (
        <UsageSums {...usage.data} rows={usage.data.rows} groups={usage.groups} />
      )}
      <ZoneNote />
    </>
  );
}

function planText({ me, account }: Viewer): string {
  const plan = `Plan “${account?.plan ?? me?.plan}”`;
  return me === undefined ? plan : `${plan}, ${numberText(me.rateLimitRpm)} calls per minute`;
}
