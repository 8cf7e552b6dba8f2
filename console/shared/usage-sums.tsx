import { timestampDate } from "@bufbuild/protobuf/wkt";
import { placeInChart, Swatch } from "./bar-chart.tsx";
import { Button } from "./button.tsx";
import { capitalized } from "./capitalized.ts";
import { csvOf, download } from "./csv.ts";
import { type Column, DataTable } from "./data-table.tsx";
import { Money, numberText } from "./money.tsx";
import { isoDay, isoMinute } from "./time.tsx";
import { type Group, groupsOf, type Split, type SplitUsage } from "./usage.ts";
import type { Periods } from "./usage-range.tsx";
import { NOUNS } from "./usage-view.ts";

type UsageSumsProps = {
  readonly rows: readonly SplitUsage[];
  /** In the order of the series of the chart. */
  readonly groups: readonly Group[];
  readonly split: Split;
  readonly names: ReadonlyMap<string, string>;
  readonly periods: Periods;
  /** The address of what the usage is divided by, if it has a page. */
  readonly hrefOf?: ((id: string) => string) | undefined;
};

type Row = Group & { readonly place: number };

const MAX_ROWS = 100;

/** The sums of each group, with the color that it has in the chart; after the highest ones, those of all others together. */
export function UsageSums({ rows, groups, split, names, periods, hrefOf }: UsageSumsProps) {
  const rest = groups.slice(MAX_ROWS);
  const others = groupsOf(
    rest.map((group) => ({ ...group, id: "" })),
    "cost",
  );
  const nameOf = (id: string) => names.get(id) ?? id;
  const save = () => download(`usage-by-${split}.csv`, [usageCsv(rows, split, names, periods)]);
  const columns: readonly Column<Row>[] = [
    {
      header: capitalized(NOUNS[split]),
      isRowHeader: true,
      cell: ({ id, place }) => (
        <>
          {groups.length > 1 && <Swatch index={placeInChart(place, groups.length)} />}{" "}
          {place === MAX_ROWS ? (
            `${numberText(rest.length)} ${rest.length === 1 ? "other" : "others"}`
          ) : hrefOf ? (
            <a href={hrefOf(id)}>{nameOf(id)}</a>
          ) : (
            nameOf(id)
          )}
          {place < MAX_ROWS && id !== "" && nameOf(id) !== id && (
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
        <h2 id="sums">Usage by {NOUNS[split]}</h2>
        <Button onClick={save}>Download CSV</Button>
      </div>
      <div class="panel">
        <DataTable
          caption={`Usage by ${NOUNS[split]}`}
          columns={columns}
          rows={[...groups.slice(0, MAX_ROWS), ...others].map((group, place) => ({ ...group, place }))}
          keyOf={({ place }) => String(place)}
        />
      </div>
    </section>
  );
}

/** The sums of each day or hour. */
function usageCsv(rows: readonly SplitUsage[], split: Split, names: ReadonlyMap<string, string>, { unit }: Periods): string {
  const hasNames = split === "key" || split === "account";
  const header = [unit, ...(hasNames ? [`${split}_id`, `${split}_name`] : [split]), ...COUNTS];
  const startText = unit === "day" ? isoDay : isoMinute;
  const lines = rows.map((row) => [
    row.start ? startText(timestampDate(row.start)) : "",
    row.id,
    ...(hasNames ? [names.get(row.id) ?? ""] : []),
    row.requests,
    row.inputTokens,
    row.cachedInputTokens,
    row.outputTokens,
    row.reasoningTokens,
    row.costMicros,
  ]);
  return csvOf([header, ...lines]);
}

const COUNTS = ["requests", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "cost_micros"];
