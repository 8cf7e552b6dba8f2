import type { ComponentChildren } from "preact";
import { rangeOf } from "../shared/usage-range.tsx";
import { UsageReport } from "../shared/usage-report.tsx";
import { accountHref, keyHref } from "./links.ts";
import { MarginTable } from "./margin-table.tsx";
import { useApi } from "./operator-session.ts";
import { usageOf } from "./usage-source.ts";

type OperatorUsageProps = {
  /** Empty for all accounts together. */
  readonly accountId: string;
  /** The section of the URL that shows the report, and what the URL selects in it. */
  readonly section: string;
  readonly params: URLSearchParams;
  /** What the cost is called. */
  readonly costName: string;
  /** Another filter. */
  readonly children?: ComponentChildren;
};

/** The pages of what the usage is divided by. */
const HREFS = { account: accountHref, key: keyHref } as const;

/** The usage and the margin of days that the operator chooses. */
export function OperatorUsage({ accountId, section, params, costName, children }: OperatorUsageProps) {
  return (
    <UsageReport
      source={usageOf(useApi(), accountId)}
      id={accountId}
      splits={accountId === "" ? ["model", "account", "key"] : ["model", "key", "user"]}
      section={section}
      params={params}
      costName={costName}
      hrefs={HREFS}
      first={children}
    >
      <MarginTable accountId={accountId} range={rangeOf(params)} />
    </UsageReport>
  );
}
