import { type Aggregator, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Metrics of prom-client whose reading takes a time that grows with the number of connections. */
const LISTS_OF_HANDLES = [
  "nodejs_active_handles",
  "nodejs_active_handles_total",
  "nodejs_active_requests",
  "nodejs_active_requests_total",
  "nodejs_active_resources",
  "nodejs_active_resources_total",
];

/** The metrics that /metrics returns. */
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
      for (const name of LISTS_OF_HANDLES) registry.removeSingleMetric(name);
    },
    calls: new Counter({
      name: "vx_calls_total",
      help: "Calls by RPC, protocol and gRPC code.",
      labelNames: ["rpc", "protocol", "code"],
      registers,
    }),
    failures: new Counter({
      name: "vx_failed_calls_total",
      help: "Failed calls of the developer API by reason.",
      labelNames: ["reason"],
      registers,
    }),
    modelCalls: new Counter({
      name: "vx_model_calls_total",
      help: "Metered calls by model and gRPC code.",
      labelNames: ["model", "code"],
      registers,
    }),
    tokens: new Counter({
      name: "vx_tokens_total",
      help: "Charged tokens by model and kind.",
      labelNames: ["model", "kind"],
      registers,
    }),
    charges: new Counter({
      name: "vx_charged_micros_total",
      help: "Charges for generations by model, in micros.",
      labelNames: ["model"],
      registers,
    }),
    latency: new Histogram({
      name: "vx_call_seconds",
      help: "Duration from the request headers to the end of the response.",
      labelNames: ["rpc", "protocol"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
    batchSize: new Histogram({
      name: "vx_batch_size",
      help: "Items per statement.",
      labelNames: ["batcher"],
      buckets: BATCH_SIZES,
      registers,
    }),
    upstreamTries: new Counter({
      name: "vx_upstream_attempts_total",
      help: "Upstream attempts by outcome.",
      labelNames: ["upstream", "outcome"],
      registers,
    }),
    attemptDuration: new Histogram({
      name: "vx_upstream_attempt_seconds",
      help: "Duration of upstream attempts, from the request to the end of the reply.",
      labelNames: ["upstream"],
      buckets: ATTEMPT_SECONDS,
      registers,
    }),
    firstToken: new Histogram({
      name: "vx_time_to_first_token_seconds",
      help: "Time from the request to an upstream to the first piece of its reply.",
      labelNames: ["model"],
      buckets: ATTEMPT_SECONDS,
      registers,
    }),
    tokenRate: new Histogram({
      name: "vx_output_tokens_per_second",
      help: "Output tokens per second of complete replies, from their first piece to their end.",
      labelNames: ["model"],
      buckets: TOKENS_PER_SECOND,
      registers,
    }),
    settlementRetries: new Counter({
      name: "vx_settlement_retries_total",
      help: "Holds whose settlement failed at first and is retried.",
      registers,
    }),
    unsettled: new Counter({
      name: "vx_unsettled_generations_total",
      help: "Generations that were not settled before the server stopped.",
      registers,
    }),
    releasedHolds: new Counter({
      name: "vx_released_holds_total",
      help: "Abandoned holds that this server released.",
      registers,
    }),
    audits: new Counter({
      name: "vx_audits_total",
      help: "Complete audits by result.",
      labelNames: ["result"],
      registers,
    }),
    auditFindings: new Gauge({
      name: "vx_audit_findings",
      help: "Findings of the last complete audit.",
      registers,
    }),
    /** A gauge whose value is read at each scrape. The aggregator combines the values of several processes. */
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
    gaugesOf(
      name: string,
      help: string,
      label: string,
      read: () => [string, number][],
      aggregator: Aggregator = "sum",
    ): void {
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
