import type { ComponentChildren } from "preact";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { Copyable } from "../shared/copy-button.tsx";
import { Money } from "../shared/money.tsx";
import { spentOf } from "../shared/spent.ts";
import { Stat, Stats } from "../shared/stat.tsx";
import { ErrorState, Notice, Skeleton } from "../shared/states.tsx";
import { Tabs } from "../shared/tabs.tsx";
import { Time } from "../shared/time.tsx";
import { useQuery } from "../shared/use-query.ts";
import { useLastAddresses, useSectionAddress } from "../shared/use-route.ts";
import { AccountActions } from "./account-actions.tsx";
import { AccountActivity } from "./account-activity.tsx";
import { AccountEvents } from "./account-events.tsx";
import { AccountFailures } from "./account-failures.tsx";
import { AccountKeys } from "./account-keys.tsx";
import { AccountLedger } from "./account-ledger.tsx";
import { AccountMembers } from "./account-members.tsx";
import { AccountPrices } from "./account-prices.tsx";
import { AccountState } from "./account-state.tsx";
import { AccountSummary } from "./account-summary.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { AccountUsage } from "./account-usage.tsx";
import { Limits } from "./limits.tsx";
import { accountHref } from "./links.ts";
import { useApi } from "./operator-session.ts";
import { AccountPayments } from "./payments-section.tsx";
import { usageOf } from "./usage-source.ts";
import { AccountWebhooks } from "./webhooks.tsx";

type Tab = {
  readonly id: string;
  readonly label: string;
  readonly Content: (props: AccountTabProps) => ComponentChildren;
};

const TABS: readonly [Tab, ...Tab[]] = [
  { id: "", label: "Summary", Content: AccountSummary },
  { id: "usage", label: "Usage", Content: AccountUsage },
  { id: "keys", label: "Keys", Content: AccountKeys },
  { id: "limits", label: "Limits", Content: AccountLimits },
  { id: "members", label: "Members", Content: AccountMembers },
  { id: "prices", label: "Prices", Content: AccountPrices },
  { id: "ledger", label: "Ledger", Content: AccountLedger },
  { id: "payments", label: "Payments", Content: AccountPayments },
  { id: "failures", label: "Failures", Content: AccountFailures },
  { id: "events", label: "Events", Content: AccountEvents },
  { id: "webhooks", label: "Webhooks", Content: AccountWebhooks },
  { id: "activity", label: "Activity", Content: AccountActivity },
];

function AccountLimits({ account }: AccountTabProps) {
  return <Limits owner={{ case: "accountId", value: account.id }} />;
}

type AccountPageProps = { readonly id: string; readonly params: URLSearchParams };

/** One account: its balance, its keys, its ledger, and what operators changed. */
export function AccountPage({ id, params }: AccountPageProps) {
  const api = useApi();
  const query = useQuery(async (signal) => (await api.getAccount({ accountId: id }, { signal })).account, [id]);
  const { data: account, problem } = query;
  const tab = TABS.find((one) => one.id === params.get("tab")) ?? TABS[0];
  const addressOf = useLastAddresses(tab.id, (route) => route.params.get("id") === id);
  return (
    <>
      <nav class="breadcrumb small" aria-label="Breadcrumb">
        <a href={useSectionAddress("accounts")}>Accounts</a>
        <span aria-hidden="true">/</span>
        <Copyable text={account?.id ?? id} what="account id" />
      </nav>
      {problem && <ErrorState problem={problem} onRetry={query.reload} />}
      {account === undefined && !problem && (
        <>
          <h1>
            <Skeleton width="14rem" />
            <span class="hidden">Loading the account</span>
          </h1>
          <AccountStats />
        </>
      )}
      {account && (
        <>
          <AccountHeader account={account} onChanged={query.reload} />
          <Tabs
            label="Parts of the account"
            current={tab.id}
            tabs={TABS.map((one) => ({
              id: one.id,
              label: one.label,
              href: addressOf(one.id, accountHref(account.id, { tab: one.id })),
            }))}
          />
          <tab.Content account={account} params={params} />
        </>
      )}
    </>
  );
}

type AccountHeaderProps = { readonly account: Account; readonly onChanged: () => void };

function AccountHeader({ account, onChanged }: AccountHeaderProps) {
  const { name, suspendedAt, closedAt, state } = account;
  return (
    <>
      <div class="page-header">
        <h1 class="title-with-badge">
          <span class="wrap">{name}</span> <AccountState account={account} />
        </h1>
        {state !== "closed" && <AccountActions account={account} onChanged={onChanged} />}
      </div>
      {state === "suspended" && (
        <Notice tone="warn">
          Suspended since <Time at={suspendedAt} />: calls with its keys are refused.
        </Notice>
      )}
      {state === "closed" && (
        <Notice tone="warn">
          Closed on <Time at={closedAt} />: its personal data is erased, and its ledger stays.
        </Notice>
      )}
      <AccountStats account={account} />
    </>
  );
}

/** Without an account, it is being loaded. */
function AccountStats({ account }: { readonly account?: Account }) {
  return (
    <Stats>
      <Stat label="Balance" value={account && <Money micros={account.balanceMicros} />} />
      <Stat label="Held by running calls" value={account && <Money micros={account.heldMicros} />} />
      {account && <Spent accountId={account.id} />}
      <Stat label="Plan" value={account?.plan} />
    </Stats>
  );
}

/** In the operator's day and month. */
function Spent({ accountId }: { readonly accountId: string }) {
  const api = useApi();
  const { data, problem } = useQuery((signal) => spentOf(usageOf(api, accountId), signal), [accountId]);
  const money = (micros: bigint | undefined) => (problem ? "–" : micros === undefined ? undefined : <Money micros={micros} />);
  return (
    <>
      <Stat label="Spent today" value={money(data?.today)} />
      <Stat label="Spent this month" value={money(data?.month)} />
    </>
  );
}
