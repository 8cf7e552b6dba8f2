import { PageHeader } from "../shared/frame.tsx";
import { UsageReport } from "./usage-report.tsx";

/** The revenue, requests and tokens of all accounts. */
export function UsageSection({ params }: { readonly params: URLSearchParams }) {
  return (
    <UsageReport
      accountId=""
      splits={["model", "account", "key"]}
      section="usage"
      params={params}
      costName="Revenue"
    >
      {(range) => <PageHeader title="Usage">{range}</PageHeader>}
    </UsageReport>
  );
}
