import {
  type Attributes,
  createTraceState,
  type HrTime,
  type SpanContext,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
} from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import type { IdGenerator, ReadableSpan } from "@opentelemetry/sdk-trace";
import {
  type AttemptResult,
  type AttemptSpan,
  type Stage,
  type StageSpan,
  type StartedAttempt,
  type TraceParent,
  traceHeadersOf,
} from "../../domain/call-trace.ts";
import { DomainError, isRefusal } from "../../domain/errors.ts";
import type { ServerTrace, TracedCall } from "../telemetry.ts";
import { attemptAttributes, callAttributes, nameOfCall, operationOf } from "./attributes.ts";

const NO_ATTRIBUTES: Attributes = Object.freeze({});

type TraceParts = {
  readonly ids: IdGenerator;
  readonly resource: Resource;
  readonly scope: ReadableSpan["instrumentationScope"];
  readonly oldNames: boolean;
  /** Must not block. */
  readonly onEnd: (span: ReadableSpan) => void;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
};

type TraceStart = {
  readonly parent: TraceParent | undefined;
  readonly traceId: string;
  readonly isSampled: boolean;
  /** By `now`, and since 1970. */
  readonly startedAtMs: number;
  readonly epochMs: number;
};

/** The trace of one call. Each span goes to the exporter as soon as it has ended. */
export class RecordedTrace implements ServerTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly #parts: TraceParts;
  readonly #start: TraceStart;
  readonly #state: string;
  readonly #context: SpanContext;
  /** From a time of `now` to the time since 1970. */
  readonly #offsetMs: number;

  constructor(parts: TraceParts, start: TraceStart) {
    this.#parts = parts;
    this.#start = start;
    this.traceId = start.traceId;
    this.spanId = parts.ids.generateSpanId();
    this.#state = start.parent?.state ?? "";
    this.#context = this.#contextOf(this.spanId);
    this.#offsetMs = start.epochMs - start.startedAtMs;
  }

  startStage(stage: Stage): StageSpan | undefined {
    return this.#start.isSampled ? this.#startStage(stage, this.#context) : undefined;
  }

  startAttempt(attempt: StartedAttempt): AttemptSpan {
    const { traceId } = this;
    const spanId = this.#start.isSampled ? this.#parts.ids.generateSpanId() : this.spanId;
    const { traceFlags: flags } = this.#context;
    return {
      headers: traceHeadersOf({ traceId, spanId, flags, state: this.#state }),
      end: (result) => {
        if (this.#start.isSampled) this.#recordAttempt(attempt, result, spanId);
      },
    };
  }

  end(call: TracedCall): void {
    const { parent, isSampled, startedAtMs } = this.#start;
    if (!isSampled) return;
    this.#record({
      name: nameOfCall(call),
      kind: SpanKind.SERVER,
      startedAtMs: startedAtMs + this.#offsetMs,
      endedAtMs: call.endedAtMs + this.#offsetMs,
      context: this.#context,
      parent: parent && { ...parent, traceFlags: parent.flags, isRemote: true },
      attributes: callAttributes(call),
      isError: call.isServerFailure,
    });
  }

  #startStage(stage: Stage, parent: SpanContext): StageSpan {
    const startedAtMs = this.#parts.now();
    const context = this.#contextOf(this.#parts.ids.generateSpanId());
    return {
      startStage: (part) => this.#startStage(part, context),
      end: (failure) => {
        this.#record({
          name: stage,
          kind: SpanKind.INTERNAL,
          startedAtMs: startedAtMs + this.#offsetMs,
          endedAtMs: this.#parts.now() + this.#offsetMs,
          context,
          parent,
          attributes: failure === undefined ? NO_ATTRIBUTES : { "error.type": reasonOf(failure) },
          isError: failure !== undefined && !isRefusal(failure),
        });
      },
    };
  }

  #recordAttempt(attempt: StartedAttempt, result: AttemptResult, spanId: string): void {
    const attributes = attemptAttributes(attempt, result, this.#parts.oldNames);
    this.#record({
      name: `${operationOf(attempt.prompt)} ${attributes["gen_ai.request.model"]}`,
      kind: SpanKind.CLIENT,
      startedAtMs: result.startedAtMs + this.#offsetMs,
      endedAtMs: result.endedAtMs + this.#offsetMs,
      context: this.#contextOf(spanId),
      parent: this.#context,
      attributes,
      isError: result.outcome !== "ok" && result.outcome !== "cancelled",
    });
  }

  #record(span: SpanRecord): void {
    const { name, kind, context, parent, startedAtMs, endedAtMs, attributes } = span;
    const { resource, scope, onEnd } = this.#parts;
    onEnd({
      name,
      kind,
      spanContext: () => context,
      ...(parent && { parentSpanContext: parent }),
      startTime: timeOf(startedAtMs),
      endTime: timeOf(endedAtMs),
      duration: timeOf(endedAtMs - startedAtMs),
      ended: true,
      status: span.isError ? ERROR : UNSET,
      attributes,
      resource,
      instrumentationScope: scope,
      ...NOTHING_ELSE,
    });
  }

  #contextOf(spanId: string): SpanContext {
    const traceFlags = this.#start.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
    if (this.#state === "") return { traceId: this.traceId, spanId, traceFlags };
    return { traceId: this.traceId, spanId, traceFlags, traceState: createTraceState(this.#state) };
  }
}

function reasonOf(failure: unknown): string {
  if (failure instanceof DomainError) return failure.reason;
  return failure instanceof Error ? failure.name : "unknown";
}

const UNSET: SpanStatus = Object.freeze({ code: SpanStatusCode.UNSET });
const ERROR: SpanStatus = Object.freeze({ code: SpanStatusCode.ERROR });
const NOTHING_ELSE = { links: [], events: [], droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 };

/**
 * A span is complete when it is made. One of the SDK costs five times as much, because it can be changed at any time: see
 * docs/decisions/0019-opentelemetry.md.
 */
type SpanRecord = {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: SpanContext;
  readonly parent: SpanContext | undefined;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly isError: boolean;
  readonly attributes: Attributes;
};

function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)];
}
