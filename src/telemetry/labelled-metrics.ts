import type { Metric, Registry } from "prom-client";

type Labels<Label extends string> = Readonly<Record<Label, string>>;
type Sample = { readonly metricName?: string; readonly labels: object; readonly value: number };

/** Counters and histograms with labels, which prom-client renders and aggregates like its own. */
export function labelledMetrics(registry: Registry) {
  const register = (name: string, help: string, type: string, read: () => Sample[]) => {
    const get = async () => ({ name, help, type, aggregator: "sum", values: read() });
    // The registry uses only the name and get().
    registry.registerMetric({ name, get } as unknown as Metric);
  };
  return {
    counter<Label extends string>(name: string, help: string, ...labelNames: Label[]) {
      const series = seriesByLabels(labelNames, (labels) => ({ labels, value: 0 }));
      register(name, help, "counter", () => series.all);
      return {
        inc(labels: Labels<Label>, value = 1): void {
          series.at(labels).value += value;
        },
      };
    },
    histogram<Label extends string>(name: string, help: string, bounds: number[], ...labelNames: Label[]) {
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
        observe(labels: Labels<Label>, value: number): void {
          const found = series.at(labels);
          const bucket = found.buckets.find(({ bound }) => value <= bound);
          if (bucket) bucket.count++;
          found.sum += value;
        },
      };
    },
  };
}

type LabelNode<Series> = { series?: Series; readonly children: Map<string, LabelNode<Series>> };

/** Finds a series by one label after the other. prom-client joins the labels to a string for each event. */
function seriesByLabels<Label extends string, Series extends object>(
  labelNames: readonly Label[],
  create: (labels: Labels<Label>) => Series,
) {
  const all: Series[] = [];
  const root: LabelNode<Series> = { children: new Map() };
  const at = (labels: Labels<Label>): Series => {
    let node = root;
    for (const name of labelNames) {
      let next = node.children.get(labels[name]);
      if (!next) {
        next = { children: new Map() };
        node.children.set(labels[name], next);
      }
      node = next;
    }
    if (node.series) return node.series;
    node.series = create(labels);
    all.push(node.series);
    return node.series;
  };
  return { all, at };
}
