import { type Attributes, createTraceState } from "@opentelemetry/api";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import fc from "fast-check";
import { expect, test } from "vitest";
import { RecordedSpan } from "../../src/telemetry/otel/recorded-trace.ts";
import { TraceEncoder } from "../../src/telemetry/otel/trace-exporter.ts";

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((values) => Buffer.from(values).toString("hex"));

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.integer({ min: 120, max: 20_000 }).map((length) => "x".repeat(length)),
);
const attributes: fc.Arbitrary<Attributes> = fc.dictionary(
  fc.string({ minLength: 1 }).filter((key) => key !== "__proto__"),
  fc.oneof(text, fc.boolean(), fc.maxSafeNat(), fc.double({ min: 0, max: 1e15 }), fc.array(text, { maxLength: 3 })),
);
const context = fc.record({ traceId: hex(16), spanId: hex(8), traceFlags: fc.constantFrom(1, 3), isRemote: fc.boolean() });
const state = fc.constantFrom(undefined, createTraceState("a=1,b=2"));
const span = fc.record({
  name: text,
  kind: fc.constantFrom(0, 1, 2),
  context: fc.tuple(context, state).map(([one, traceState]) => (traceState ? { ...one, traceState } : one)),
  parent: fc.option(context, { nil: undefined }),
  startedAtMs: fc.double({ min: 0, max: 4e12, noNaN: true }),
  endedAtMs: fc.double({ min: 0, max: 4e12, noNaN: true }),
  isError: fc.boolean(),
  attributes,
});

test("spans are encoded to the bytes of OpenTelemetry's own serializer", () => {
  const encoder = new TraceEncoder();
  const spans = fc.array(span, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(spans, attributes, text, (fields, resourceAttributes, version) => {
      const resource = resourceFromAttributes(resourceAttributes);
      const scope = { name: "vx", version };
      const recorded = fields.map((one) => new RecordedSpan(one, resource, scope));
      const expected = ProtobufTraceSerializer.serializeRequest(recorded);
      expect(Buffer.from(encoder.encode(recorded)).equals(expected ?? Buffer.of())).toBe(true);
    }),
    { numRuns: 100 },
  );
});
