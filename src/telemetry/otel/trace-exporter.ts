import type { Attributes, AttributeValue } from "@opentelemetry/api";
import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPExporterBase } from "@opentelemetry/otlp-exporter-base";
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from "@opentelemetry/otlp-exporter-base/node-http";
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from "@opentelemetry/otlp-transformer";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { TraceSettings } from "../telemetry.ts";

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
  return new OTLPExporterBase(createOtlpHttpExportDelegate(options, serializer, name, TraceExporterMetricsHelper, undefined));
}

/** Wire types of protobuf. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Shorter texts are written here: a call into Node takes longer than they do. Their length is one byte. */
const MAX_SHORT_LENGTH = 64;
const ASCII = 0x80;

const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

/**
 * Encodes spans of one resource and one scope as an ExportTraceServiceRequest. The bytes are those of the serializer of
 * OpenTelemetry, which takes four times as long: see docs/decisions/0019-opentelemetry.md.
 */
export class TraceEncoder {
  #bytes = Buffer.allocUnsafe(1 << 16);
  #at = 0;

  encode(spans: readonly ReadableSpan[]): Uint8Array {
    const [first] = spans;
    if (!first) return new Uint8Array();
    this.#at = 0;
    const resourceSpans = this.#begin(1);
    const resource = this.#begin(1);
    this.#attributes(1, first.resource.attributes);
    this.#number(2, 0);
    this.#end(resource);
    const scopeSpans = this.#begin(2);
    const { name, version = "" } = first.instrumentationScope;
    const scope = this.#begin(1);
    this.#text(1, name);
    if (version !== "") this.#text(2, version);
    this.#end(scope);
    for (const span of spans) this.#span(span);
    this.#end(scopeSpans);
    this.#end(resourceSpans);
    return Uint8Array.prototype.slice.call(this.#bytes, 0, this.#at);
  }

  #span(span: ReadableSpan): void {
    const { traceId, spanId, traceFlags, traceState } = span.spanContext();
    const { parentSpanContext: parent } = span;
    const start = this.#begin(2);
    this.#id(1, traceId);
    this.#id(2, spanId);
    if (traceState) this.#text(3, traceState.serialize());
    if (parent) this.#id(4, parent.spanId);
    this.#text(5, span.name);
    this.#number(6, span.kind + 1);
    this.#time(7, span.startTime);
    this.#time(8, span.endTime);
    this.#attributes(9, span.attributes);
    // No attributes, events or links were dropped.
    for (const field of [10, 12, 14]) this.#number(field, 0);
    const status = this.#begin(15);
    this.#number(3, span.status.code);
    this.#end(status);
    this.#tag(16, FIXED32);
    this.#reserve(4);
    const flags = traceFlags | HAS_IS_REMOTE | (parent?.isRemote ? IS_REMOTE : 0);
    this.#at = this.#bytes.writeUInt32LE(flags, this.#at);
    this.#end(start);
  }

  #attributes(field: number, attributes: Attributes): void {
    for (const key in attributes) {
      const pair = this.#begin(field);
      this.#text(1, key);
      this.#value(2, attributes[key]);
      this.#end(pair);
    }
  }

  #value(field: number, value: AttributeValue | null | undefined): void {
    const start = this.#begin(field);
    if (typeof value === "string") this.#text(1, value);
    else if (typeof value === "boolean") this.#number(2, value ? 1 : 0);
    else if (Number.isSafeInteger(value) && (value as number) >= 0) this.#number(3, value as number);
    else if (typeof value === "number") this.#double(4, value);
    else if (Array.isArray(value)) {
      const list = this.#begin(5);
      for (const item of value) this.#value(1, item);
      this.#end(list);
    }
    this.#end(start);
  }

  /** Starts a message whose length is not known. Returns where it starts. */
  #begin(field: number): number {
    this.#tag(field, BYTES);
    // One byte for the length: most messages are short.
    this.#reserve(1);
    return ++this.#at;
  }

  #end(start: number): void {
    const length = this.#at - start;
    if (length < 0x80) {
      this.#bytes[start - 1] = length;
      return;
    }
    const more = sizeOf(length) - 1;
    this.#reserve(more);
    this.#bytes.copyWithin(start + more, start, this.#at);
    this.#at = start - 1;
    this.#varint(length);
    this.#at += length;
  }

  #id(field: number, hex: string): void {
    const start = this.#begin(field);
    this.#reserve(hex.length / 2);
    const bytes = this.#bytes;
    let at = this.#at;
    for (let i = 0; i < hex.length; i += 2) bytes[at++] = (digitOf(hex.charCodeAt(i)) << 4) | digitOf(hex.charCodeAt(i + 1));
    this.#at = at;
    this.#end(start);
  }

  #text(field: number, text: string): void {
    const start = this.#begin(field);
    this.#reserve(text.length * 3);
    this.#at += this.#writeShort(text) || this.#bytes.write(text, this.#at);
    this.#end(start);
  }

  /** Returns the number of bytes; 0 if the text is too long or not ASCII, and then the written bytes are overwritten. */
  #writeShort(text: string): number {
    if (text.length > MAX_SHORT_LENGTH) return 0;
    const bytes = this.#bytes;
    const at = this.#at;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code >= ASCII) return 0;
      bytes[at + i] = code;
    }
    return text.length;
  }

  #number(field: number, value: number): void {
    this.#tag(field, VARINT);
    this.#varint(value);
  }

  #double(field: number, value: number): void {
    this.#tag(field, FIXED64);
    this.#reserve(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  /** Nanoseconds since 1970. The product omits a factor of 2 ** 9, because a double could not represent it exactly. */
  #time(field: number, [seconds, nanos]: readonly [number, number]): void {
    this.#tag(field, FIXED64);
    this.#reserve(8);
    const product = seconds * (1e9 / 2 ** 9);
    const low = (product % 2 ** 23) * 2 ** 9 + nanos;
    const high = Math.floor(product / 2 ** 23) + (low >= 2 ** 32 ? 1 : 0);
    this.#bytes.writeUInt32LE(low % 2 ** 32, this.#at);
    this.#at = this.#bytes.writeUInt32LE(high, this.#at + 4);
  }

  #tag(field: number, type: number): void {
    this.#varint((field << 3) | type);
  }

  #varint(value: number): void {
    this.#reserve(10);
    if (value < 0x80) {
      this.#bytes[this.#at++] = value;
      return;
    }
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
    this.#bytes[this.#at++] = rest;
  }

  #reserve(size: number): void {
    if (this.#at + size <= this.#bytes.length) return;
    const bytes = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + size));
    this.#bytes.copy(bytes, 0, 0, this.#at);
    this.#bytes = bytes;
  }
}

/** The value of a hexadecimal digit in ASCII; letters have the bit 0x40. */
function digitOf(code: number): number {
  return (code & 0xf) + (code >> 6) * 9;
}

/** The number of bytes of a length as a varint. */
function sizeOf(length: number): number {
  return length < 0x80 ? 1 : length < 0x4000 ? 2 : length < 0x20_0000 ? 3 : 4;
}
