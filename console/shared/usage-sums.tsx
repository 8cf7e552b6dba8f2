import { timestampDate } from "@bufbuild/protobuf/wkt";
import { MAX_SERIES, Swatch } from "./bar-chart.tsx";
import { Button } from "./button.tsx";
import { csvOf, download } from "./csv.ts";
import { type Column, DataTable } from "./data-table.tsx";
import { Money, numberText } from "./money.tsx";
import { isoDay } from "./time.tsx";
import type { Group, Split, SplitUsage } from "./usage.ts";

type UsageSumsProps = {
  readonly rows: readonly SplitUsage[];
  /** In the order of the series of the chart. */
  readonly groups: readonly Group[];
  readonly split: Split;
  readonly names: ReadonlyMap<string, string>;
  /** The address of what the usage is divided by, if it has a page. */
  readonly hrefOf?: (id: string) => string;
};

type Row = Group & { readonly place: number };

const TITLES: Readonly<Record<Split, string>> = { model: "Model", key: "Key", account: "Account" };

/** The sums of each group, with the color that it has in the chart. */
export function UsageSums({ rows, groups, split, names, hrefOf }: UsageSumsProps) {
  const nameOf = (id: string) => names.get(id) ?? id;
  const save = () => download(`usage-by-${split}.csv`, [usageCsv(rows, split, names)]);
  const columns: readonly Column<Row>[] = [
    {
      header: TITLES[split],
      isRowHeader: true,
      cell: ({ id, place }) => (
        <>
          {groups.length > 1 && <Swatch index={placeInChart(place, groups.length)} />}{" "}
          {hrefOf ? <a href={hrefOf(id)}>{nameOf(id)}</a> : nameOf(id)}
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
function usageCsv(rows: readonly SplitUsage[], split: Split, names: ReadonlyMap<string, string>): string {
  const header = ["day", ...(split === "model" ? ["model"] : [`${split}_id`, `${split}_name`]), ...COUNTS];
  const lines = rows.map((row) => [
    row.start ? isoDay(timestampDate(row.start)) : "",
    row.id,
    ...(split === "model" ? [] : [names.get(row.id) ?? ""]),
    row.requests,
    row.inputTokens,
    row.cachedInputTokens,
    row.outputTokens,
    row.reasoningTokens,
    row.costMicros,
  ]);
  return csvOf([header, ...lines]);
}

const COUNTS = [
  "requests",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "reasoning_tokens",
  "cost_micros",
];
