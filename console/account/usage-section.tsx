import { PageHeader } from "../shared/frame.tsx";
import { UsageReport } from "../shared/usage-report.tsx";
import { usageOf, type Viewer } from "./viewer.ts";

type UsageSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** The usage of the account. */
export function UsageSection({ viewer, params }: UsageSectionProps) {
  return (
    <>
      <PageHeader title="Usage" />
      <UsageReport
        source={usageOf(viewer)}
        id={viewer.id}
        splits={["model", "key", "user"]}
        section="usage"
        params={params}
        costName="Cost"
      />
    </>
  );
}
