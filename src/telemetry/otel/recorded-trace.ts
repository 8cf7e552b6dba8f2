import {
  type Attributes,
  createTraceState,
  type SpanContext,
  SpanKind,
  TraceFlags,
} from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import type { IdGenerator, ReadableSpan } from "@opentelemetry/sdk-trace";
import type {
  AttemptResult,
  AttemptSpan,
  Stage,
  StageSpan,
  StartedAttempt,
} from "../../domain/call-trace.ts";
import { DomainError, ERRORS } from "../../domain/errors.ts";
import { type TraceParent, traceHeadersOf } from "../../domain/trace-parent.ts";
import type { ServerTrace, TracedCall } from "../server-trace.ts";
import { attemptAttributes, operationOf } from "./attempt-attributes.ts";
import { callAttributes, nameOfCall } from "./call-attributes.ts";
import { RecordedSpan, type SpanRecord } from "./recorded-span.ts";

const NO_ATTRIBUTES: Attributes = Object.freeze({});

/** What the traces of a process share. */
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
          isError: isFault(failure),
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
    const { resource, scope, onEnd } = this.#parts;
    onEnd(new RecordedSpan(span, resource, scope));
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

/** Whether the failure is not the caller's. */
function isFault(failure: unknown): boolean {
  if (failure instanceof DomainError) return ERRORS[failure.reason].status >= 500;
  return failure !== undefined;
}
