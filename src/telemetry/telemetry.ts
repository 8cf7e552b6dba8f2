import type { AttemptResult, StartedAttempt } from "../domain/call-trace.ts";
import type { StartTrace } from "./server-trace.ts";

export const OTLP_PROTOCOLS = ["http/protobuf", "http/json"] as const;
export const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** What the OTEL_… variables say. The exporters themselves read addresses, headers and timeouts. */
export type TelemetrySettings = {
  /** Undefined if no traces are exported. */
  readonly traces: TraceSettings | undefined;
  /** Undefined if no metrics are exported. */
  readonly metrics: MetricSettings | undefined;
  /** Whether the names of older GenAI conventions are exported besides the current ones. */
  readonly oldNames: boolean;
};

export type TraceSettings = {
  readonly protocol: (typeof OTLP_PROTOCOLS)[number];
  readonly sampler: (typeof SAMPLERS)[number];
  /** The share of new traces that are sampled, for the samplers with a ratio. */
  readonly samplerRatio: number;
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduledDelayMillis: number;
  readonly exportTimeoutMillis: number;
};

export type MetricSettings = {
  readonly protocol: (typeof OTLP_PROTOCOLS)[number];
  readonly exportIntervalMillis: number;
  readonly exportTimeoutMillis: number;
};

/** The export of traces and metrics by OpenTelemetry. */
export type Telemetry = {
  readonly startTrace: StartTrace | undefined;
  readonly recordAttempt: RecordAttempt | undefined;
  /** Exports the waiting spans and metrics, for a limited time. */
  shutdown(): Promise<void>;
};

export type RecordAttempt = (
  attempt: Pick<StartedAttempt, "model" | "settings" | "prompt">,
  result: AttemptResult,
) => void;
