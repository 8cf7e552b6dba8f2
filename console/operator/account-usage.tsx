import type { AccountTabProps } from "./account-tab-props.ts";
import { UsageReport } from "./usage-report.tsx";

/** What the account used in the last days. */
export function AccountUsage({ account, params }: AccountTabProps) {
  return (
    <UsageReport
      accountId={account.id}
      splits={["model", "key"]}
      section="accounts"
      params={params}
      costName="Spent"
    >
      {(range) => <div class="page-actions">{range}</div>}
    </UsageReport>
  );
}
