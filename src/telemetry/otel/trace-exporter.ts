import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from "@opentelemetry/otlp-exporter-base/node-http";
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from "@opentelemetry/otlp-transformer";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { TraceSettings } from "../telemetry.ts";
import { TraceEncoder } from "./trace-encoder.ts";

/** Reads its address, headers and limits from the OTEL_… variables. */
export function traceExporter(protocol: TraceSettings["protocol"]): SpanExporter {
  if (protocol === "http/json") return new JsonTraceExporter();
  const encoder = new TraceEncoder();
  const serializer = {
    ...ProtobufTraceSerializer,
    serializeRequest: (spans: ReadableSpan[]) => encoder.encode(spans),
  };
  const headers = { "Content-Type": "application/x-protobuf" };
  const options = convertLegacyHttpOptions({}, "TRACES", "v1/traces", headers);
  const name = "otlp_http_span_exporter";
  return new OTLPExporterBase(
    createOtlpHttpExportDelegate(options, serializer, name, TraceExporterMetricsHelper, undefined),
  );
}
