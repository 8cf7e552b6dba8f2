import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { UsageRow } from "../../gen/vx/v1/usage_pb.js";
import { MAX_SERIES, Swatch } from "../shared/bar-chart.tsx";
import { Button } from "../shared/button.tsx";
import { csvOf, download } from "../shared/csv.ts";
import { type Column, DataTable } from "../shared/data-table.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { isoDay } from "../shared/time.tsx";
import type { Group, Split } from "./usage.ts";

type UsageSumsProps = {
  readonly rows: readonly UsageRow[];
  /** In the order of the series of the chart. */
  readonly groups: readonly Group[];
  readonly split: Split;
  readonly names: ReadonlyMap<string, string>;
};

type Row = Group & { readonly place: number };

/** The sums of each model or key, with the color that it has in the chart. */
export function UsageSums({ rows, groups, split, names }: UsageSumsProps) {
  const nameOf = (id: string) => names.get(id) ?? id;
  const save = () => download(`usage-by-${split}.csv`, usageCsv(rows, split, names));
  const columns: readonly Column<Row>[] = [
    {
      header: split === "model" ? "Model" : "Key",
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
    <section class="usage" aria-labelledby="sums">
      <div class="usage-header">
        <h2 id="sums">Usage by {split}</h2>
        <Button onClick={save}>Download CSV</Button>
      </div>
      <div class="panel">
        <DataTable
          caption={`Usage by ${split}`}
          columns={columns}
          rows={groups.map((group, place) => ({ ...group, place }))}
          keyOf={({ id }) => id}
        />
      </div>
    </section>
  );
}

/** The last series of the chart stands for all groups that have none of their own. */
function placeInChart(place: number, groups: number): number {
  return groups > MAX_SERIES ? Math.min(place, MAX_SERIES - 1) : place;
}

/** The sums of each day. */
function usageCsv(rows: readonly UsageRow[], split: Split, names: ReadonlyMap<string, string>): string {
  const header = ["day", ...(split === "key" ? ["key_id", "key_name"] : ["model"]), ...COUNTS];
  const lines = rows.map((row) => [
    row.start ? isoDay(timestampDate(row.start)) : "",
    ...(split === "key" ? [row.keyId, names.get(row.keyId) ?? ""] : [row.model]),
    row.requests,
    row.inputTokens,
    row.cachedInputTokens,
    row.outputTokens,
    row.reasoningTokens,
    row.costMicros,
  ]);
  return csvOf(header, lines);
}

const COUNTS = [
  "requests",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "reasoning_tokens",
  "cost_micros",
];
