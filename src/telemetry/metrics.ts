import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** The metrics that /metrics returns. */
export type Metrics = ReturnType<typeof createMetrics>;

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const BATCH_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
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
    charges: new Counter({
      name: "vx_charged_micros_total",
      help: "Charges for generations, in micros.",
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
    /** A gauge whose value is read at each scrape. */
    gauge(name: string, help: string, read: () => number): void {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },
    /** A gauge with one labelled value per item. */
    gaugesOf(name: string, help: string, label: string, read: () => [string, number][]): void {
      new Gauge({
        name,
        help,
        registers,
        labelNames: [label],
        collect() {
          this.reset();
          for (const [thing, value] of read()) this.set({ [label]: thing }, value);
        },
      });
    },
  };
}
