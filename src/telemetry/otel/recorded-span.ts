import {
  type Attributes,
  type HrTime,
  type SpanContext,
  type SpanKind,
  type SpanStatus,
  SpanStatusCode,
} from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";

type Scope = ReadableSpan["instrumentationScope"];
type NoItems = never[];

const NONE: NoItems = [];
const UNSET: SpanStatus = { code: SpanStatusCode.UNSET };
const ERROR: SpanStatus = { code: SpanStatusCode.ERROR };

/** What a span consists of. */
export type SpanRecord = {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: SpanContext;
  readonly parent: SpanContext | undefined;
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly isError: boolean;
  readonly attributes: Attributes;
};

/**
 * A span that is complete when it is made, and small: many wait for their export. A span of the SDK costs five times as
 * much, because it can be changed at any time: see docs/decisions/0019-opentelemetry.md.
 */
export class RecordedSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly parentSpanContext?: SpanContext;
  readonly attributes: Attributes;
  readonly resource: Resource;
  readonly instrumentationScope: Scope;
  readonly #context: SpanContext;
  readonly #startedAtMs: number;
  readonly #endedAtMs: number;
  readonly #isError: boolean;

  constructor(span: SpanRecord, resource: Resource, scope: Scope) {
    this.name = span.name;
    this.kind = span.kind;
    this.#context = span.context;
    if (span.parent) this.parentSpanContext = span.parent;
    this.#startedAtMs = span.startedAtMs;
    this.#endedAtMs = span.endedAtMs;
    this.#isError = span.isError;
    this.attributes = span.attributes;
    this.resource = resource;
    this.instrumentationScope = scope;
  }

  get startTime(): HrTime {
    return timeOf(this.#startedAtMs);
  }

  get endTime(): HrTime {
    return timeOf(this.#endedAtMs);
  }

  get status(): SpanStatus {
    return this.#isError ? ERROR : UNSET;
  }

  get links(): NoItems {
    return NONE;
  }

  get events(): NoItems {
    return NONE;
  }

  get ended(): boolean {
    return true;
  }

  get droppedAttributesCount(): number {
    return 0;
  }

  get droppedEventsCount(): number {
    return 0;
  }

  get droppedLinksCount(): number {
    return 0;
  }

  get duration(): HrTime {
    const [start, end] = [this.startTime, this.endTime];
    const nanos = (end[0] - start[0]) * 1e9 + end[1] - start[1];
    return [Math.floor(nanos / 1e9), nanos % 1e9];
  }

  spanContext(): SpanContext {
    return this.#context;
  }
}

/** Seconds and nanoseconds. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}
