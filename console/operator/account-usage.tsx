import type { AccountTabProps } from "./account-tab-props.ts";
import { OperatorUsage } from "./usage-report.tsx";

/** What the account used in the days that the operator chooses. */
export function AccountUsage({ account, params }: AccountTabProps) {
  return <OperatorUsage accountId={account.id} section="accounts" params={params} costName="Spent" />;
}
