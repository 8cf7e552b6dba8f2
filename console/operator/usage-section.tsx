import { PageHeader } from "../shared/frame.tsx";
import { AccountFilter } from "./account-filter.tsx";
import { OperatorUsage } from "./usage-report.tsx";

/** The charges, requests and tokens of all accounts, or of one. */
export function UsageSection({ params }: { readonly params: URLSearchParams }) {
  const account = params.get("account") ?? "";
  return (
    <>
      <PageHeader title="Usage" />
      <OperatorUsage accountId={account} section="usage" params={params} costName="Charges">
        <AccountFilter section="usage" value={account} />
      </OperatorUsage>
    </>
  );
}
