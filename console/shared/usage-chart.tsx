import { useMemo } from "preact/hooks";
import { BarChart } from "./bar-chart.tsx";
import { moneyText, numberText } from "./money.tsx";
import { dayText, shortDayText } from "./time.tsx";
import { type Group, type Measure, type Split, type SplitUsage, seriesOf } from "./usage.ts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact" });

const TITLES: Readonly<Record<Measure, string>> = { cost: "Cost", requests: "Requests", tokens: "Tokens" };

type UsageChartProps = {
  readonly rows: readonly SplitUsage[];
  readonly groups: readonly Group[];
  readonly days: readonly Date[];
  readonly split: Split;
  readonly measure: Measure;
  readonly names: ReadonlyMap<string, string>;
  readonly onSelect?: ((day: Date) => void) | undefined;
};

/** The usage of each day, by group. */
export function UsageChart({ rows, groups, days, split, measure, names, onSelect }: UsageChartProps) {
  const series = useMemo(
    () => seriesOf(rows, groups, { days, measure, nameOf: (id) => names.get(id) ?? id }),
    [rows, groups, days, measure, names],
  );
  const points = useMemo(
    () => days.map((day) => ({ label: dayText(day), shortLabel: shortDayText(day) })),
    [days],
  );
  return (
    <BarChart
      label={`${TITLES[measure]} by day and ${split}`}
      pointName="Day"
      points={points}
      series={series}
      format={measure === "cost" ? moneyText : numberText}
      onSelect={onSelect && ((index) => onSelect(days[index] ?? new Date()))}
      formatTick={measure === "cost" ? moneyTick : compactTick}
    />
  );
}

function moneyTick(value: number): string {
  return moneyText(BigInt(Math.round(value)));
}

function compactTick(value: number): string {
  return COMPACT.format(value);
}
