import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AccountUsageRow } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { EmptyState } from "../shared/states.tsx";
import { periodsOf, type Range } from "../shared/usage-range.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useApi } from "./operator-session.ts";

const COLUMNS: readonly Column<AccountUsageRow>[] = [
  {
    header: "Model",
    isRowHeader: true,
    cell: ({ usage, upstream }) => (
      <>
        {usage?.model}
        <div class="muted small regular">{upstream}</div>
      </>
    ),
  },
  { header: "Requests", isNumber: true, cell: ({ usage }) => numberText(usage?.requests ?? 0n) },
  { header: "Charges", isNumber: true, cell: ({ usage }) => <Money micros={usage?.costMicros ?? 0n} /> },
  { header: "Cost", isNumber: true, cell: ({ upstreamCostMicros }) => <Money micros={upstreamCostMicros} /> },
  {
    header: "Margin",
    isNumber: true,
    cell: ({ marginMicros, uncostedMicros }) => (
      <>
        <Money micros={marginMicros} />
        {uncostedMicros > 0n && (
          <div class="muted small">
            <Money micros={uncostedMicros} /> without a cost
          </div>
        )}
      </>
    ),
  },
];

type MarginTableProps = {
  /** Empty for all accounts. */
  readonly accountId: string;
  readonly range: Range;
};

/** The charges, cost and margin of a range, by model and upstream. */
export function MarginTable({ accountId, range }: MarginTableProps) {
  const api = useApi();
  const pages = usePages(
    async (pageToken, signal) => {
      const { starts, end } = periodsOf(range);
      const request = {
        accountId,
        from: timestampFromDate(starts[0] ?? end),
        to: timestampFromDate(end),
        groupBy: ["model", "upstream"],
        pageToken,
        pageSize: 25,
      };
      const { rows, nextPageToken } = await api.getUsage(request, { signal });
      return { rows, nextPageToken };
    },
    JSON.stringify([accountId, range]),
  );
  return (
    <section>
      <h2>Margin</h2>
      <PagedTable
        caption="Margin"
        columns={COLUMNS}
        keyOf={({ usage, upstream }) => `${usage?.model} ${upstream}`}
        pages={pages}
        empty={<EmptyState title="No charged calls" />}
      />
      <p class="muted small">
        The margin is that of all models and keys in the range. The cost is that of upstreams with a “cost” in models.yaml. Calls
        that were not charged have no cost here. Charges include what promotional credit paid.
      </p>
    </section>
  );
}
