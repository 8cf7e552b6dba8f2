import { useMemo } from "preact/hooks";
import { BarChart } from "./bar-chart.tsx";
import { capitalized } from "./capitalized.ts";
import { moneyText, numberText } from "./money.tsx";
import { dayText, hourText, shortDayText, shortHourText } from "./time.tsx";
import { type Group, type Measure, type Split, type SplitUsage, seriesOf } from "./usage.ts";
import type { Periods } from "./usage-range.tsx";
import { NOUNS } from "./usage-view.ts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact" });

const TITLES: Readonly<Record<Measure, string>> = { cost: "Cost", requests: "Requests", tokens: "Tokens" };

/** How many days or hours can be between two names of the axis. */
const STEPS = { day: [1, 2, 3, 5, 7, 10, 14, 15, 30, 60, 90], hour: [1, 2, 3, 4, 6, 12, 24] } as const;

type UsageChartProps = {
  readonly rows: readonly SplitUsage[];
  readonly groups: readonly Group[];
  readonly periods: Periods;
  readonly split: Split;
  readonly measure: Measure;
  readonly names: ReadonlyMap<string, string>;
  readonly onSelect?: ((start: Date) => void) | undefined;
};

/** The usage of each day or hour, by group. */
export function UsageChart({ rows, groups, periods, split, measure, names, onSelect }: UsageChartProps) {
  const { unit, starts } = periods;
  const series = useMemo(
    () => seriesOf(rows, groups, { starts, measure, nameOf: (id) => names.get(id) ?? id }),
    [rows, groups, starts, measure, names],
  );
  const points = useMemo(
    () =>
      starts.map((start, index) =>
        unit === "day"
          ? { label: dayText(start), shortLabel: shortDayText(start), place: index }
          : { label: hourText(start), shortLabel: shortHourText(start), place: start.getHours() },
      ),
    [unit, starts],
  );
  return (
    <BarChart
      label={`${TITLES[measure]} by ${unit} and ${NOUNS[split]}`}
      pointName={capitalized(unit)}
      points={points}
      steps={STEPS[unit]}
      series={series}
      format={measure === "cost" ? moneyText : numberText}
      onSelect={onSelect && ((index) => onSelect(starts[index] ?? periods.end))}
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
