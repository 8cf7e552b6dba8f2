import { expect, test, vi } from "vitest";
import { readTelemetrySettings } from "../../src/app/settings/telemetry.ts";
import { startTelemetry } from "../../src/telemetry/otel/start-telemetry.ts";

const OTEL_EXPORTER_OTLP_ENDPOINT = "http://127.0.0.1:4318";

test.each([
  ["nothing", {}],
  ["only a service name", { OTEL_SERVICE_NAME: "vx" }],
  ["empty values", { OTEL_EXPORTER_OTLP_ENDPOINT: "", OTEL_TRACES_EXPORTER: "" }],
  ["exporters of none", { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }],
  ["a disabled SDK", { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: "true", OTEL_TRACES_EXPORTER: "zipkin" }],
])("%s enables no export", (_, env) => {
  expect(readTelemetrySettings(env)).toBeUndefined();
});

test("an endpoint enables traces and metrics, an exporter enables its own", () => {
  expect(readTelemetrySettings({ OTEL_EXPORTER_OTLP_ENDPOINT })).toMatchObject({
    traces: { protocol: "http/protobuf", sampler: "parentbased_always_on", maxQueueSize: 16_384 },
    metrics: { protocol: "http/protobuf", exportIntervalMillis: 60_000 },
    oldNames: false,
  });
  expect(readTelemetrySettings({ OTEL_TRACES_EXPORTER: "otlp" })).toMatchObject({ traces: {}, metrics: undefined });
  expect(readTelemetrySettings({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_METRICS_EXPORTER: "prometheus" })?.metrics).toBeUndefined();
});

test.each([
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "must be http/protobuf or http/json; gRPC is not supported"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317", "must be an http or https URL"],
  ["OTEL_TRACES_EXPORTER", "zipkin", "must be otlp or none"],
  ["OTEL_LOGS_EXPORTER", "otlp", "must be none"],
  ["OTEL_TRACES_SAMPLER", "sometimes", "must be one of always_on"],
  ["OTEL_TRACES_SAMPLER_ARG", "2", "must be a number from 0 to 1"],
  ["OTEL_BSP_MAX_QUEUE_SIZE", "-1", "must be a number of spans"],
])("%s=%s is refused", (name, value, problem) => {
  expect(() => readTelemetrySettings({ OTEL_EXPORTER_OTLP_ENDPOINT, [name]: value })).toThrow(`${name}: ${problem}`);
});

test("a ratio samples new traces only, and samplers without a parent ignore the caller", () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
  const parent = (flags: number) => ({ traceId: "a".repeat(32), spanId: "b".repeat(16), flags, state: "" });
  const flagsOf = (sampler: string, from: ReturnType<typeof parent> | undefined) => {
    const settings = readTelemetrySettings({
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_TRACES_SAMPLER: sampler,
      OTEL_TRACES_SAMPLER_ARG: "0",
    });
    if (!settings) throw new Error("no export");
    const { startTrace } = startTelemetry(settings, { log: {} as never, version: "test" });
    return startTrace?.(from, 0).startStage("hold") === undefined ? 0 : 1;
  };
  expect(flagsOf("parentbased_traceidratio", undefined)).toBe(0);
  expect(flagsOf("parentbased_traceidratio", parent(1))).toBe(1);
  expect(flagsOf("traceidratio", parent(1))).toBe(0);
  expect(flagsOf("always_on", parent(0))).toBe(1);
  expect(flagsOf("parentbased_always_off", undefined)).toBe(0);
  vi.unstubAllEnvs();
});

test("an unreachable collector blocks nothing, uses bounded memory and is logged without a stack", async () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
  const warnings: object[] = [];
  const log = { warn: (fields: object) => warnings.push(fields) } as never;
  const settings = readTelemetrySettings({ OTEL_TRACES_EXPORTER: "otlp", OTEL_BSP_MAX_QUEUE_SIZE: "600" });
  if (!settings) throw new Error("no export");
  const telemetry = startTelemetry(settings, { log, version: "test" });
  for (let i = 0; i < 5_000; i++) telemetry.startTrace?.(undefined, 0).startStage("hold")?.end();
  await telemetry.shutdown();
  expect(JSON.stringify(warnings)).not.toMatch(/"stack"|\.ts:\d/);
  vi.unstubAllEnvs();
});
