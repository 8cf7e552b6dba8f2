import { type Aggregator, Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from "prom-client";

/** Metrics of prom-client whose reading takes a time that grows with the number of connections. */
const LISTS_OF_HANDLES = /^nodejs_active_/;

export type Metrics = ReturnType<typeof createMetrics>;

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const ATTEMPT_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const TOKENS_PER_SECOND = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

export function createMetrics(version: string) {
  const registry = new Registry();
  const registers = [registry];
  let hasProcessMetrics = false;
  registerBuildInfo(version, registers);
  return {
    registry,
    /**
     * Starts the metrics of the process and of the event loop, once. They are not needed, and cost memory, until
     * something reads the metrics.
     */
    startProcessMetrics(): void {
      if (hasProcessMetrics) return;
      hasProcessMetrics = true;
      collectDefaultMetrics({ register: registry });
      for (const { name } of registry.getMetricsAsArray()) if (LISTS_OF_HANDLES.test(name)) registry.removeSingleMetric(name);
    },
    ...modelMetrics(registry),
    ...recordedMetrics(registry),
    ...webhookMetrics(registry),
    ...readMetrics(registers),
  };
}

function modelMetrics(registry: Registry) {
  const { counter } = labelledMetrics(registry);
  return {
    modelCalls: counter("vx_model_calls_total", "Metered calls by model and gRPC code.", "model", "code"),
    tokens: counter("vx_tokens_total", "Charged tokens by model and kind.", "model", "kind"),
    charges: counter("vx_charged_micros_total", "Charges for generations by model, in micros.", "model"),
    costedCharges: counter(
      "vx_costed_charges_micros_total",
      "Charges for generations whose upstream has a cost, by model, in micros.",
      "model",
    ),
    upstreamCosts: counter(
      "vx_upstream_cost_micros_total",
      "Cost of generations at their upstreams, by model, in micros.",
      "model",
    ),
  };
}

/** Metrics that components change when something happens. */
function recordedMetrics(registry: Registry) {
  const { counter, histogram } = labelledMetrics(registry);
  const total = (name: string, help: string) => new Counter({ name, help, registers: [registry] });
  return {
    calls: counter("vx_calls_total", "Calls by RPC, protocol and gRPC code.", "rpc", "protocol", "code"),
    failures: counter("vx_failed_calls_total", "Failed calls of the developer API by reason.", "reason"),
    omittedFailures: counter("vx_omitted_failures_total", "Failed calls that are only counted in the list of failures.", "cause"),
    latency: histogram(
      "vx_call_seconds",
      "Duration from the request headers to the end of the response.",
      LATENCY_SECONDS,
      "rpc",
      "protocol",
    ),
    batchSize: histogram("vx_batch_size", "Items per statement.", BATCH_SIZES, "batcher"),
    paymentAlerts: counter("vx_payment_alerts_total", "Payments that operators should look at.", "reason"),
    upstreamAttempts: counter("vx_upstream_attempts_total", "Upstream attempts by outcome.", "upstream", "outcome"),
    attemptDuration: histogram(
      "vx_upstream_attempt_seconds",
      "Duration of upstream attempts, from the request to the end of the reply.",
      ATTEMPT_SECONDS,
      "upstream",
    ),
    firstToken: histogram(
      "vx_time_to_first_token_seconds",
      "Time from the request to an upstream to the first piece of its reply.",
      ATTEMPT_SECONDS,
      "model",
    ),
    tokenRate: histogram(
      "vx_output_tokens_per_second",
      "Output tokens per second of complete replies, from their first piece to their end.",
      TOKENS_PER_SECOND,
      "model",
    ),
    settlementRetries: total("vx_settlement_retries_total", "Holds whose settlement failed at first and is retried."),
    refusedSettlements: total(
      "vx_refused_settlements_total",
      "Calls that failed without a charge because the database refused to write.",
    ),
    unsettled: total("vx_unsettled_generations_total", "Generations that were not settled before the server stopped."),
    releasedHolds: total("vx_released_holds_total", "Abandoned holds that this server released."),
    audits: counter("vx_audits_total", "Complete audits by result.", "result"),
    auditFindings: new Gauge({
      name: "vx_audit_findings",
      help: "Findings of the last complete audit.",
      registers: [registry],
    }),
  };
}

function webhookMetrics(registry: Registry) {
  const { counter, histogram } = labelledMetrics(registry);
  return {
    webhookAttempts: counter("vx_webhook_attempts_total", "Attempts to deliver events by outcome.", "outcome"),
    webhookDuration: histogram("vx_webhook_attempt_seconds", "Duration of attempts to deliver events.", ATTEMPT_SECONDS),
  };
}

/** Gauges whose values are read at each scrape. The aggregator combines the values of several processes. */
function readMetrics(registers: Registry[]) {
  return {
    gauge(name: string, help: string, read: () => number, aggregator: Aggregator = "sum"): void {
      new Gauge({
        name,
        help,
        registers,
        aggregator,
        collect() {
          this.set(read());
        },
      });
    },
    /** Gauges whose values are read together. They have no value while the reading fails. */
    gaugesRead<Figure extends string>(
      gauges: Readonly<Record<Figure, { readonly name: string; readonly help: string }>>,
      read: () => Promise<Readonly<Record<Figure, number>>>,
    ): void {
      const all = Object.entries(gauges) as [Figure, { name: string; help: string }][];
      const created: [Figure, Gauge][] = [];
      let reading: Promise<void> | undefined;
      const readAll = async () => {
        const figures = await read().catch(() => undefined);
        for (const [figure, gauge] of created) gauge.set(figures?.[figure] ?? Number.NaN);
        reading = undefined;
      };
      for (const [figure, { name, help }] of all) {
        const collect = () => {
          reading ??= readAll();
          return reading;
        };
        created.push([figure, new Gauge({ name, help, registers, collect })]);
      }
    },
    /** A gauge with one labelled value per item. */
    gaugesOf(name: string, help: string, label: string, read: () => [string, number][], aggregator: Aggregator = "sum"): void {
      new Gauge({
        name,
        help,
        registers,
        labelNames: [label],
        aggregator,
        collect() {
          this.reset();
          for (const [thing, value] of read()) this.set({ [label]: thing }, value);
        },
      });
    },
  };
}

function registerBuildInfo(version: string, registers: Registry[]): void {
  new Gauge({
    name: "vx_build_info",
    help: "Always 1; the labels have the versions of the server and of Node.js.",
    labelNames: ["version", "node_version"],
    aggregator: "max",
    registers,
  }).set({ version, node_version: process.versions.node }, 1);
}

/** A value for each label, in the order of their names. */
type Values<Names extends readonly string[]> = { readonly [Position in keyof Names]: string };
type Labels = Readonly<Record<string, string>>;
type Sample = { readonly metricName?: string; readonly labels: object; readonly value: number };

/** Counters and histograms with labels, which prom-client renders and aggregates like its own. */
function labelledMetrics(registry: Registry) {
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
    histogram<const Names extends readonly string[]>(name: string, help: string, bounds: number[], ...labelNames: Names) {
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
function seriesByLabels<Series extends object>(labelNames: readonly string[], create: (labels: Labels) => Series) {
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
