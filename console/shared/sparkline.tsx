const WIDTH = 160;
const HEIGHT = 28;

type SparklineProps = {
  readonly label: string;
  /** Not negative, oldest first. */
  readonly values: readonly number[];
};

/** A line chart without a scale: the value is shown beside it. */
export function Sparkline({ label, values }: SparklineProps) {
  const highest = Math.max(...values, Number.MIN_VALUE);
  const step = WIDTH / Math.max(values.length - 1, 1);
  const points = values.map(
    (value, index) => `${(index * step).toFixed(1)},${(HEIGHT - 1 - (value / highest) * (HEIGHT - 2)).toFixed(1)}`,
  );
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {points.length > 1 && (
        <>
          <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
          <polyline points={points.join(" ")} />
        </>
      )}
    </svg>
  );
}
