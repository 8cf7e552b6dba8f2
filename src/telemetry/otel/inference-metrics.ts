import type { Attributes, Meter } from "@opentelemetry/api";
import { inputTokensOf, outputTokensOf, type Usage } from "../../domain/price.ts";
import type { RecordAttempt } from "../telemetry.ts";
import { requestAttributes } from "./attributes.ts";

/** The buckets that the GenAI conventions recommend. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_CHUNK = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** The metrics of the GenAI conventions of OpenTelemetry, by upstream and model. */
export function inferenceMetrics(meter: Meter, oldNames: boolean): RecordAttempt {
  const recorders = [currentMetrics(meter), ...(oldNames ? [oldMetrics(meter)] : [])];
  return (attempt, result) => {
    const attributes = requestAttributes(attempt);
    if (result.outcome !== "ok") attributes["error.type"] = result.outcome;
    for (const record of recorders) record(attributes, result);
  };
}

type Record = (attributes: Attributes, result: Parameters<RecordAttempt>[1]) => void;

function currentMetrics(meter: Meter): Record {
  const measureTimes = times(meter, "gen_ai.client.inference");
  const countTokens = tokenCounters(meter);
  return (attributes, result) => {
    measureTimes(attributes, result);
    if (result.usage) countTokens(attributes, result.usage);
  };
}

function tokenCounters(meter: Meter): (attributes: Attributes, usage: Usage) => void {
  const counters = TOKEN_COUNTERS.map(({ name, countOf }) => {
    const counter = meter.createCounter(`gen_ai.client.inference.usage.${name}`, { unit: "{token}" });
    return { counter, countOf };
  });
  return (attributes, usage) => {
    for (const { counter, countOf } of counters) if (countOf(usage) > 0) counter.add(countOf(usage), attributes);
  };
}

const TOKEN_COUNTERS: readonly { readonly name: string; countOf(usage: Usage): number }[] = [
  { name: "input_tokens", countOf: inputTokensOf },
  { name: "output_tokens", countOf: outputTokensOf },
  { name: "cache_read.input_tokens", countOf: (usage) => usage.cachedInput },
  { name: "cache_write.input_tokens", countOf: (usage) => usage.cacheWrite },
  { name: "reasoning.output_tokens", countOf: (usage) => usage.reasoning },
];

function oldMetrics(meter: Meter): Record {
  const measureTimes = times(meter, "gen_ai.client.operation");
  const advice = { explicitBucketBoundaries: TOKENS };
  const tokens = meter.createHistogram("gen_ai.client.token.usage", { unit: "{token}", advice });
  return (attributes, result) => {
    measureTimes(attributes, result);
    const { usage } = result;
    if (!usage) return;
    tokens.record(inputTokensOf(usage), { ...attributes, "gen_ai.token.type": "input" });
    tokens.record(outputTokensOf(usage), { ...attributes, "gen_ai.token.type": "output" });
  };
}

function times(meter: Meter, prefix: string): Record {
  const histogram = (name: string, explicitBucketBoundaries: number[]) =>
    meter.createHistogram(`${prefix}.${name}`, { unit: "s", advice: { explicitBucketBoundaries } });
  const duration = histogram("duration", SECONDS);
  const firstChunk = histogram("time_to_first_chunk", FIRST_CHUNK);
  return (attributes, { startedAtMs, endedAtMs, firstPieceAtMs }) => {
    duration.record((endedAtMs - startedAtMs) / 1_000, attributes);
    if (firstPieceAtMs !== undefined) firstChunk.record((firstPieceAtMs - startedAtMs) / 1_000, attributes);
  };
}
