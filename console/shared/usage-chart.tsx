import { useMemo } from "preact/hooks";
import { BarChart } from "./bar-chart.tsx";
import { capitalized } from "./capitalized.ts";
import { moneyText, numberText } from "./money.tsx";
import { dayText, hourText, shortDayText, shortHourText } from "./time.tsx";
import { type Group, type Measure, type PeriodCount, type Split, type SplitUsage, seriesOf, VALUES } from "./usage.ts";
import type { Periods } from "./usage-range.tsx";
import { NOUNS } from "./usage-view.ts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact" });

const TITLES: Readonly<Record<Measure, string>> = { cost: "Cost", requests: "Requests", tokens: "Tokens" };

/** How many days or hours can be between two names of the axis. */
const STEPS = { day: [1, 2, 3, 5, 7, 10, 14, 15, 30, 60, 90], hour: [1, 2, 3, 4, 6, 12, 24] } as const;

type UsageChartProps = Pick<PeriodChartProps<SplitUsage>, "rows" | "periods" | "names" | "onSelect"> & {
  readonly groups: readonly Group[];
  readonly split: Split;
  readonly measure: Measure;
};

/** The usage of each day or hour, by group. */
export function UsageChart({ split, measure, ...chart }: UsageChartProps) {
  return (
    <PeriodChart
      {...chart}
      label={`${TITLES[measure]} by ${chart.periods.unit} and ${NOUNS[split]}`}
      measureOf={VALUES[measure]}
      format={measure === "cost" ? moneyText : numberText}
      formatTick={measure === "cost" ? moneyTick : compactTick}
    />
  );
}

type PeriodChartProps<Row> = {
  readonly label: string;
  readonly rows: readonly Row[];
  /** The highest first. */
  readonly groups: readonly Pick<Group, "id">[];
  readonly periods: Periods;
  readonly names: ReadonlyMap<string, string>;
  readonly measureOf: (row: Row) => bigint;
  readonly format?: (value: bigint) => string;
  readonly formatTick?: (value: number) => string;
  readonly onSelect?: ((start: Date) => void) | undefined;
};

/** A bar for each day or hour, divided by group. */
export function PeriodChart<Row extends PeriodCount>(props: PeriodChartProps<Row>) {
  const { label, rows, groups, periods, names, measureOf, onSelect } = props;
  const { format = numberText, formatTick = compactTick } = props;
  const { unit, starts } = periods;
  const series = useMemo(
    () => seriesOf(rows, groups, { starts, measureOf, nameOf: (id) => names.get(id) ?? id }),
    [rows, groups, starts, measureOf, names],
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
      label={label}
      pointName={capitalized(unit)}
      points={points}
      steps={STEPS[unit]}
      series={series}
      format={format}
      onSelect={onSelect && ((index) => onSelect(starts[index] ?? periods.end))}
      formatTick={formatTick}
    />
  );
}

function moneyTick(value: number): string {
  return moneyText(BigInt(Math.round(value)));
}

function compactTick(value: number): string {
  return COMPACT.format(value);
}
