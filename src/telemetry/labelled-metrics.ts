import type { Metric, Registry } from "prom-client";

/** A value for each label, in the order of their names. */
type Values<Names extends readonly string[]> = { readonly [Position in keyof Names]: string };
type Labels = Readonly<Record<string, string>>;
type Sample = { readonly metricName?: string; readonly labels: object; readonly value: number };

/** Counters and histograms with labels, which prom-client renders and aggregates like its own. */
export function labelledMetrics(registry: Registry) {
  const register = (name: string, help: string, type: string, read: () => Sample[]) => {
    const get = async () => ({ name, help, type, aggregator: "sum", values: read() });
    // The registry uses only the name and get().
    registry.registerMetric({ name, get } as unknown as Metric);
  };
  return {
    counter<const Names extends readonly string[]>(name: string, help: string, ...labelNames: Names) {
      const series = seriesByLabels(labelNames, (labels) => ({ labels, value: 0 }));
      register(name, help, "counter", () => series.all);
      return {
        inc(values: Values<Names>, value = 1): void {
          series.at(values).value += value;
        },
      };
    },
    histogram<const Names extends readonly string[]>(
      name: string,
      help: string,
      bounds: number[],
      ...labelNames: Names
    ) {
      const series = seriesByLabels(labelNames, (labels) => ({
        labels,
        buckets: [...bounds, Number.POSITIVE_INFINITY].map((bound) => ({ bound, count: 0 })),
        sum: 0,
      }));
      register(name, help, "histogram", () =>
        series.all.flatMap(({ labels, buckets, sum }) => {
          let value = 0;
          const samples = buckets.map(({ bound, count }): Sample => {
            value += count;
            const le = Number.isFinite(bound) ? bound : "+Inf";
            return { metricName: `${name}_bucket`, labels: { le, ...labels }, value };
          });
          samples.push({ metricName: `${name}_sum`, labels, value: sum });
          samples.push({ metricName: `${name}_count`, labels, value });
          return samples;
        }),
      );
      return {
        observe(values: Values<Names>, value: number): void {
          const found = series.at(values);
          const bucket = found.buckets.find(({ bound }) => value <= bound);
          if (bucket) bucket.count++;
          found.sum += value;
        },
      };
    },
  };
}

type LabelNode<Series> = { series?: Series; readonly children: Map<string, LabelNode<Series>> };

/** Finds a series by the value of one label after the other. prom-client joins the labels to a string for each event. */
function seriesByLabels<Series extends object>(
  labelNames: readonly string[],
  create: (labels: Labels) => Series,
) {
  const all: Series[] = [];
  const root: LabelNode<Series> = { children: new Map() };
  const append = (node: LabelNode<Series>, values: readonly string[]): Series => {
    const series = create(Object.fromEntries(labelNames.map((name, i) => [name, values[i] ?? ""])));
    node.series = series;
    all.push(series);
    return series;
  };
  const at = (values: readonly string[]): Series => {
    let node = root;
    for (const value of values) {
      let next = node.children.get(value);
      if (!next) {
        next = { children: new Map() };
        node.children.set(value, next);
      }
      node = next;
    }
    return node.series ?? append(node, values);
  };
  return { all, at };
}
