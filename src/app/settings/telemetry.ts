import { z } from "zod";
import { OTLP_PROTOCOLS, SAMPLERS, type TelemetrySettings } from "../../telemetry/telemetry.ts";
import { ConfigError } from "../start-error.ts";

const flag = z
  .string()
  .transform((text) => text.toLowerCase() === "true")
  .default(false);
const milliseconds = (usual: number) =>
  z
    .string()
    .regex(/^[1-9]\d{0,8}$/, "must be a number of milliseconds")
    .transform(Number)
    .default(usual);
const spans = (usual: number) =>
  z
    .string()
    .regex(/^[1-9]\d{0,5}$/, "must be a number of spans")
    .transform(Number)
    .default(usual);
const protocol = z.enum(OTLP_PROTOCOLS, {
  error: `must be ${OTLP_PROTOCOLS.join(" or ")}; gRPC is not supported`,
});
const endpoint = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });

const schema = z.object({
  OTEL_SDK_DISABLED: flag,
  OTEL_TRACES_EXPORTER: z.enum(["otlp", "none"], { error: "must be otlp or none" }).optional(),
  // "prometheus" enables no export: Prometheus reads /metrics.
  OTEL_METRICS_EXPORTER: z.enum(["otlp", "none", "prometheus"], { error: "must be otlp, prometheus or none" }).optional(),
  OTEL_LOGS_EXPORTER: z
    .enum(["none"], { error: "must be none: the server writes its logs to stderr, with the ids of traces" })
    .optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint.optional(),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: endpoint.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol.default("http/protobuf"),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol.optional(),
  OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: protocol.optional(),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS, { error: `must be one of ${SAMPLERS.join(", ")}` }).default("parentbased_always_on"),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .refine((text) => Number(text) >= 0 && Number(text) <= 1, "must be a number from 0 to 1")
    .transform(Number)
    .default(1),
  // Larger than in the specification: a call has six spans, and a large export takes little more CPU time than a small one.
  OTEL_BSP_MAX_QUEUE_SIZE: spans(16_384),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: spans(2_048),
  OTEL_BSP_SCHEDULE_DELAY: milliseconds(5_000),
  OTEL_BSP_EXPORT_TIMEOUT: milliseconds(30_000),
  OTEL_METRIC_EXPORT_INTERVAL: milliseconds(60_000),
  OTEL_METRIC_EXPORT_TIMEOUT: milliseconds(30_000),
  OTEL_SEMCONV_STABILITY_OPT_IN: z.string().default(""),
});

/**
 * The standard OTEL_… variables. Undefined if they enable no export: only an address or an exporter enables one, so
 * that nothing is sent without a setting.
 */
export function readTelemetrySettings(env: NodeJS.ProcessEnv): TelemetrySettings | undefined {
  const set = Object.entries(env).filter(([name, value]) => name.startsWith("OTEL_") && value !== "");
  if (set.length === 0) return undefined;
  const parsed = schema.safeParse(Object.fromEntries(set));
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === "true") return undefined;
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("\n"));
  }
  const { data } = parsed;
  const traces = isExported(
    data.OTEL_TRACES_EXPORTER,
    data.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? data.OTEL_EXPORTER_OTLP_ENDPOINT,
  );
  const metrics = isExported(
    data.OTEL_METRICS_EXPORTER,
    data.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT ?? data.OTEL_EXPORTER_OTLP_ENDPOINT,
  );
  if (!traces && !metrics) return undefined;
  return {
    traces: traces ? traceSettings(data) : undefined,
    metrics: metrics ? metricSettings(data) : undefined,
    oldNames: data.OTEL_SEMCONV_STABILITY_OPT_IN.split(",").some((name) => name.trim() === "gen_ai/dup"),
  };
}

type Values = z.infer<typeof schema>;

function isExported(exporter: string | undefined, address: string | undefined): boolean {
  return exporter === undefined ? address !== undefined : exporter === "otlp";
}

function traceSettings(values: Values): TelemetrySettings["traces"] {
  return {
    protocol: values.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? values.OTEL_EXPORTER_OTLP_PROTOCOL,
    sampler: values.OTEL_TRACES_SAMPLER,
    samplerRatio: values.OTEL_TRACES_SAMPLER_ARG,
    maxQueueSize: values.OTEL_BSP_MAX_QUEUE_SIZE,
    maxExportBatchSize: values.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
    scheduledDelayMillis: values.OTEL_BSP_SCHEDULE_DELAY,
    exportTimeoutMillis: values.OTEL_BSP_EXPORT_TIMEOUT,
  };
}

function metricSettings(values: Values): TelemetrySettings["metrics"] {
  return {
    protocol: values.OTEL_EXPORTER_OTLP_METRICS_PROTOCOL ?? values.OTEL_EXPORTER_OTLP_PROTOCOL,
    exportIntervalMillis: values.OTEL_METRIC_EXPORT_INTERVAL,
    exportTimeoutMillis: Math.min(values.OTEL_METRIC_EXPORT_TIMEOUT, values.OTEL_METRIC_EXPORT_INTERVAL),
  };
}
