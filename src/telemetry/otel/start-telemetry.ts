import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { context, DiagLogLevel, diag, SpanKind, trace } from "@opentelemetry/api";
import { OTLPMetricExporter as JsonMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from "@opentelemetry/otlp-exporter-base/node-http";
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from "@opentelemetry/otlp-transformer";
import { detectResources, envDetector, type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  RandomIdGenerator,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import type { Log } from "../log.ts";
import type { MetricSettings, RecordAttempt, StartTrace, Telemetry, TelemetrySettings, TraceSettings } from "../telemetry.ts";
import { inferenceMetrics } from "./inference-metrics.ts";
import { RecordedTrace } from "./recorded-trace.ts";

/** Longest that a silent collector may delay shutdown. */
const SHUTDOWN_MS = 3_000;
/** Minimum pause between export warnings. */
const WARNING_PAUSE_MS = 60_000;

type TelemetryOptions = { readonly log: Log; readonly version: string };

/** Loaded only if the OTEL_… variables enable an export. */
export function startTelemetry(settings: TelemetrySettings, { log, version }: TelemetryOptions): Telemetry {
  logProblems(log);
  const resource = resourceOf(version);
  const scope = { name: "vx", version };
  const traces = settings.traces && traceExport(settings.traces, resource, scope, settings.oldNames);
  const metrics = settings.metrics && metricExport(settings.metrics, resource, scope, settings.oldNames);
  return {
    startTrace: traces?.startTrace,
    recordAttempt: metrics?.recordAttempt,
    shutdown: async () => {
      const ended = Promise.allSettled([traces?.shutdown(), metrics?.shutdown()]);
      const timeout = new AbortController();
      const isOver = wait(SHUTDOWN_MS, undefined, timeout).catch(() => undefined);
      await Promise.race([ended, isOver]);
      timeout.abort();
    },
  };
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace these. Each worker is an instance of its own. */
function resourceOf(version: string): Resource {
  return resourceFromAttributes({
    "service.name": "vx",
    "service.version": version,
    "service.instance.id": randomUUID(),
  }).merge(detectResources({ detectors: [envDetector] }));
}

type Scope = { readonly name: string; readonly version: string };

function traceExport(settings: TraceSettings, resource: Resource, scope: Scope, oldNames: boolean) {
  // The queue is bounded: while the collector is slow or down, further spans are dropped.
  const processor = new BatchSpanProcessor({ ...settings, exporter: traceExporter(settings.protocol) });
  const sampler = samplerOf(settings);
  const ids = new RandomIdGenerator();
  const root = context.active();
  const now = () => performance.now();
  const parts = { ids, resource, scope, oldNames, now, onEnd: processor.onEnd.bind(processor) };
  const startTrace: StartTrace = (parent, startedAtMs) => {
    const traceId = parent?.traceId ?? ids.generateTraceId();
    const from = parent ? trace.setSpanContext(root, { ...parent, traceFlags: parent.flags, isRemote: true }) : root;
    const { decision } = sampler.shouldSample(from, traceId, "call", SpanKind.SERVER, {}, []);
    const isSampled = decision === SamplingDecision.RECORD_AND_SAMPLED;
    return new RecordedTrace(parts, { parent, traceId, isSampled, startedAtMs, epochMs: Date.now() });
  };
  return { startTrace, shutdown: () => processor.shutdown() };
}

/** Reads its address, headers and limits from the OTEL_… variables. */
function traceExporter(protocol: TraceSettings["protocol"]): SpanExporter {
  if (protocol === "http/json") return new JsonTraceExporter();
  const options = convertLegacyHttpOptions({}, "TRACES", "v1/traces", { "Content-Type": "application/x-protobuf" });
  const name = "otlp_http_span_exporter";
  const delegate = createOtlpHttpExportDelegate(options, ProtobufTraceSerializer, name, TraceExporterMetricsHelper, undefined);
  return new OTLPExporterBase<ReadableSpan[]>(delegate);
}

function metricExport(settings: MetricSettings, resource: Resource, scope: Scope, oldNames: boolean) {
  const exporter = settings.protocol === "http/json" ? new JsonMetricExporter() : new OTLPMetricExporter();
  const { exportIntervalMillis, exportTimeoutMillis } = settings;
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis, exportTimeoutMillis });
  const provider = new MeterProvider({ resource, readers: [reader] });
  const recordAttempt: RecordAttempt = inferenceMetrics(provider.getMeter(scope.name, scope.version), oldNames);
  return { recordAttempt, shutdown: () => provider.shutdown() };
}

/** Problems of an export are not bugs of the server: they are logged without stacks, and not for each export. */
function logProblems(log: Log): void {
  let nextAtMs = 0;
  const warn = (message: string) => {
    if (performance.now() < nextAtMs) return;
    nextAtMs = performance.now() + WARNING_PAUSE_MS;
    log.warn({ detail: messageOf(message) }, "exporting traces or metrics failed");
  };
  const ignore = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** OpenTelemetry reports an error as the JSON of its fields, with the stack. */
function messageOf(text: string): string {
  try {
    const { message, code } = JSON.parse(text) as { readonly message?: string; readonly code?: string };
    return message || code || "unknown";
  } catch {
    return text;
  }
}

/** The sampler that OTEL_TRACES_SAMPLER names. */
function samplerOf({ sampler, samplerRatio }: TraceSettings): Sampler {
  switch (sampler) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return new TraceIdRatioBasedSampler(samplerRatio);
    case "parentbased_always_on":
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplerRatio) });
  }
}
