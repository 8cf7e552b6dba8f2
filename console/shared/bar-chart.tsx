import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type Column, DataTable } from "./data-table.tsx";

export type Series = { readonly name: string; readonly values: readonly bigint[] };

type Point = {
  readonly label: string;
  readonly shortLabel: string;
  /** The axis names points whose places are multiples of a step. */
  readonly place: number;
};

type BarChartProps = {
  /** What the chart shows: "Cost by day and model". */
  readonly label: string;
  /** What a point is: "Day". */
  readonly pointName: string;
  readonly points: readonly Point[];
  readonly steps: readonly number[];
  /** One value for each point, not negative. The first is at the bottom of the bars. */
  readonly series: readonly Series[];
  readonly format: (value: bigint) => string;
  readonly formatTick: (value: number) => string;
  /** Chooses a point, by a click on its bar or by its name in the table. */
  readonly onSelect?: ((index: number) => void) | undefined;
};

const HEIGHT = 260;
const COLORS = ["--chart-1", "--chart-2", "--chart-3", "--chart-4", "--chart-5", "--chart-other"] as const;

/** The number of series with a color of their own; a last one may show all others. */
export const MAX_SERIES = COLORS.length;

/** Stacked bars. The table below the chart has the exact values. */
export function BarChart(props: BarChartProps) {
  const { label, points, series, format } = props;
  const place = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<Hovered>();
  const isDark = useDark();
  useEffect(() => {
    if (!place.current) return;
    const element = place.current;
    const chart = new uPlot(optionsOf(props, element, setHovered), stacked(props), element);
    // The names of the points in the table do the same with the keyboard.
    const select = () => {
      const { idx } = chart.cursor;
      if (typeof idx === "number") props.onSelect?.(idx);
    };
    element.addEventListener("click", select);
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      element.removeEventListener("click", select);
      observer.disconnect();
      chart.destroy();
      setHovered(undefined);
    };
  }, [points, series, format, isDark]);
  return (
    <figure class="chart" aria-label={label}>
      {series.length > 1 && <Legend series={series} />}
      <div class="chart-place">
        <div ref={place} class="chart-canvas" role="img" aria-label={`${label}. The table has the values.`} />
        {hovered && <Tooltip {...props} hovered={hovered} />}
      </div>
      <details class="chart-table">
        <summary>Show as table</summary>
        <ValueTable {...props} />
      </details>
    </figure>
  );
}

type Hovered = { readonly index: number; readonly left: number; readonly isRight: boolean };

function useDark(): boolean {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const update = () => setDark(query.matches);
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, [query]);
  return isDark;
}

/** The tops of the bars, the highest series first: each next one is drawn over a part of it. */
function stacked({ points, series }: BarChartProps): uPlot.AlignedData {
  const tops: number[][] = [];
  const sums = points.map(() => 0n);
  for (const { values } of series) {
    for (const index of sums.keys()) sums[index] = (sums[index] ?? 0n) + (values[index] ?? 0n);
    // A pixel needs no exact value.
    tops.unshift(sums.map(Number));
  }
  return [points.map((_, index) => index), ...tops];
}

function optionsOf(
  { points, steps, series, formatTick }: BarChartProps,
  element: HTMLElement,
  onHover: (hovered: Hovered | undefined) => void,
): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const font = `12px ${color("--font")}`;
  const axis = { stroke: color("--muted"), font, ticks: { show: false } };
  const bars = uPlot.paths.bars?.({ size: [0.72, 40], radius: [0.12, 0] });
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [12, 8, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { setScale: false, x: false, y: false } },
    scales: {
      x: { time: false, range: () => [-0.5, points.length - 0.5] },
      y: { range: (_chart, _min, max) => [0, max > 0 ? max * 1.05 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 32,
        space: 64,
        incrs: [...steps],
        splits: (_chart, _axis, _min, _max, step) => points.flatMap(({ place }, index) => (place % step === 0 ? [index] : [])),
        values: (_chart, splits) => splits.map((index) => points[index]?.shortLabel ?? ""),
      },
      {
        ...axis,
        grid: { stroke: color("--line"), width: 1 },
        incrs: INTEGER_STEPS,
        size: (chart, labels) => widthOf(chart, labels, font),
        values: (_chart, splits) => splits.map(formatTick),
      },
    ],
    series: [
      {},
      ...series.map((one, index) => ({
        label: one.name,
        fill: color(COLORS[series.length - 1 - index] ?? "--chart-other"),
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      })),
    ],
    hooks: {
      setCursor: [
        (chart) => {
          const index = chart.cursor.idx;
          if (typeof index !== "number" || (chart.cursor.left ?? -1) < 0) return onHover(undefined);
          const left = chart.valToPos(index, "x") + chart.bbox.left / devicePixelRatio;
          onHover({ index, left, isRight: left > element.clientWidth / 2 });
        },
      ],
    },
  };
}

/** Values are whole micros, tokens or requests. */
const INTEGER_STEPS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

function widthOf(chart: uPlot, labels: readonly string[] | null, font: string): number {
  chart.ctx.font = font;
  const widths = (labels ?? []).map((text) => chart.ctx.measureText(text).width);
  return Math.ceil(Math.max(16, ...widths)) + 14;
}

function Legend({ series }: { readonly series: readonly Series[] }) {
  return (
    <ul class="legend small">
      {series.map(({ name }, index) => (
        <li key={index}>
          <Swatch index={index} />
          <span class="wrap">{name}</span>
        </li>
      ))}
    </ul>
  );
}

/** The series of a group. The last one stands for all groups that have none of their own. */
export function placeInChart(place: number, groups: number): number {
  return groups > MAX_SERIES ? Math.min(place, MAX_SERIES - 1) : place;
}

/** The color of a series. */
export function Swatch({ index }: { readonly index: number }) {
  return <span class="swatch" style={{ background: `var(${COLORS[index] ?? "--chart-other"})` }} aria-hidden="true" />;
}

type TooltipProps = BarChartProps & { readonly hovered: Hovered };

function Tooltip({ points, series, format, hovered }: TooltipProps) {
  const { index, left, isRight } = hovered;
  const shown = series
    .map((one, place) => ({ name: one.name, place, value: one.values[index] ?? 0n }))
    .filter(({ value }) => value > 0n)
    .reverse();
  const total = shown.reduce((sum, { value }) => sum + value, 0n);
  return (
    <div class={`tooltip small ${isRight ? "tooltip-left" : ""}`} style={{ "--left": `${left}px` }} aria-hidden="true">
      <div class="tooltip-title">
        <span>{points[index]?.label}</span>
        <strong>{format(total)}</strong>
      </div>
      {series.length > 1 &&
        shown.map(({ name, place, value }) => (
          <div key={place} class="tooltip-row">
            <Swatch index={place} />
            <span class="tooltip-name">{name}</span>
            <span>{format(value)}</span>
          </div>
        ))}
    </div>
  );
}

function ValueTable(props: Omit<BarChartProps, "formatTick" | "steps">) {
  const { label, pointName, points, series, format, onSelect } = props;
  type Row = Point & { readonly index: number };
  const columns: Column<Row>[] = [
    {
      header: pointName,
      isRowHeader: true,
      cell: (row) =>
        onSelect ? (
          <button type="button" class="link-button" onClick={() => onSelect(row.index)}>
            {row.label}
          </button>
        ) : (
          row.label
        ),
    },
    ...series.map(({ name, values }) => ({
      header: name,
      isNumber: true,
      cell: ({ index }: Row) => format(values[index] ?? 0n),
    })),
  ];
  const rows = points.map((point, index) => ({ ...point, index }));
  return (
    <div class="panel">
      <DataTable caption={label} columns={columns} rows={rows} keyOf={({ index }) => String(index)} />
    </div>
  );
}
