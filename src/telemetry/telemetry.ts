import type { AttemptResult, CallTrace, StartedAttempt, TraceParent } from "../domain/call-trace.ts";
import type { Micros } from "../domain/money.ts";
import type { Usage } from "../domain/price.ts";

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
  readonly traces: TraceSettings | undefined;
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

export type Telemetry = {
  readonly startTrace: StartTrace | undefined;
  readonly recordAttempt: RecordAttempt | undefined;
  /** Exports the waiting spans and metrics, for a limited time. */
  shutdown(): Promise<void>;
};

export type RecordAttempt = (attempt: Pick<StartedAttempt, "model" | "settings" | "prompt">, result: AttemptResult) => void;

export type ServerTrace = CallTrace & {
  /** Call this once, when the call has ended and its charge is settled. */
  end(call: TracedCall): void;
};

/** Starts the span of a call. Times are by performance.now(). */
export type StartTrace = (parent: TraceParent | undefined, startedAtMs: number) => ServerTrace;

export type HttpRoute = { readonly verb: string; readonly path: string };

/** What the span of a finished call shows. It has no content, no key and no address of the caller. */
export type TracedCall = {
  /** "vx.v1.MeService/GetMe", or "none" for an address without a route. */
  readonly rpc: string;
  readonly protocol: string;
  readonly route: HttpRoute | undefined;
  readonly code: string;
  readonly status: number | undefined;
  /** The code of the error; undefined if the call succeeded. */
  readonly reason: string | undefined;
  readonly isServerFailure: boolean;
  readonly requestId: string;
  readonly accountId: string | undefined;
  readonly keyId: string | undefined;
  readonly operatorId: string | undefined;
  readonly model: string | undefined;
  readonly generationId: string | undefined;
  readonly charge: { readonly usage: Usage; readonly amountMicros: Micros } | undefined;
  readonly endedAtMs: number;
};
