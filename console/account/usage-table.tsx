import { MAX_SERIES, Swatch } from "../shared/bar-chart.tsx";
import { type Column, DataTable } from "../shared/data-table.tsx";
import { Money, numberText } from "../shared/money.tsx";
import type { Group, Split } from "./usage.ts";

type UsageTableProps = {
  /** In the order of the series of the chart. */
  readonly groups: readonly Group[];
  readonly split: Split;
  readonly nameOf: (id: string) => string;
};

type Row = Group & { readonly place: number };

/** The sums of each model or key, with the color that it has in the chart. */
export function UsageTable({ groups, split, nameOf }: UsageTableProps) {
  const title = split === "model" ? "Model" : "Key";
  const columns: readonly Column<Row>[] = [
    {
      header: title,
      isRowHeader: true,
      cell: ({ id, place }) => (
        <>
          {groups.length > 1 && <Swatch index={placeInChart(place, groups.length)} />} {nameOf(id)}
          {nameOf(id) !== id && (
            <div>
              <code class="muted">{id}</code>
            </div>
          )}
        </>
      ),
    },
    { header: "Requests", isNumber: true, cell: ({ requests }) => numberText(requests) },
    { header: "Input tokens", isNumber: true, cell: ({ inputTokens }) => numberText(inputTokens) },
    { header: "Output tokens", isNumber: true, cell: ({ outputTokens }) => numberText(outputTokens) },
    { header: "Cost", isNumber: true, cell: ({ costMicros }) => <Money micros={costMicros} isAligned /> },
  ];
  return (
    <div class="panel">
      <DataTable
        caption={`Usage by ${split}`}
        columns={columns}
        rows={groups.map((group, place) => ({ ...group, place }))}
        keyOf={({ id }) => id}
      />
    </div>
  );
}

/** The last series of the chart stands for all groups that have none of their own. */
function placeInChart(place: number, groups: number): number {
  return groups > MAX_SERIES ? Math.min(place, MAX_SERIES - 1) : place;
}
