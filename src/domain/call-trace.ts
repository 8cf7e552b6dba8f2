import type { Model, UpstreamSettings } from "./model.ts";
import type { FinishReason } from "./output.ts";
import type { Usage } from "./price.ts";
import type { Prompt } from "./prompt.ts";

/** The headers that continue a trace at an upstream. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** The trace of one call, by W3C Trace Context. It never has content of prompts and replies, nor keys. */
export type CallTrace = {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The span of this server; undefined if it exports no traces. */
  readonly spanId: string | undefined;
  startStage(stage: Stage): StageSpan | undefined;
  startAttempt(attempt: StartedAttempt): AttemptSpan;
};

/** The stages of a call before and after its attempts. The admission is a part of the gate. */
export type Stage = "gate" | "admission" | "hold" | "settlement";

export type StageSpan = {
  startStage(stage: Stage): StageSpan;
  end(failure?: unknown): void;
};

/** Ends the span with the work. Without a span this returns the same promise. */
export function measured<Result>(span: StageSpan | undefined, work: Promise<Result>): Promise<Result> {
  return span ? endAfter(span, work) : work;
}

async function endAfter<Result>(span: StageSpan, work: Promise<Result>): Promise<Result> {
  try {
    const result = await work;
    span.end();
    return result;
  } catch (error) {
    span.end(error);
    throw error;
  }
}

/** A request of a call to one upstream. */
export type StartedAttempt = {
  readonly model: Model;
  readonly settings: UpstreamSettings;
  readonly prompt: Prompt;
  /** Counts from 1 for each upstream of a call. */
  readonly number: number;
};

export type AttemptSpan = {
  readonly headers: TraceHeaders;
  end(result: AttemptResult): void;
};

/** How an attempt ended. Times are by a monotonic clock. */
export type AttemptResult = {
  readonly outcome: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly firstPieceAtMs: number | undefined;
  readonly finishReason: FinishReason | undefined;
  /** Undefined if the upstream reported none. */
  readonly usage: Usage | undefined;
};

/** The trace context that a caller sent. */
export type TraceParent = {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span: 16 hexadecimal digits. */
  readonly spanId: string;
  /** Bit 0: the caller records the trace. */
  readonly flags: number;
  /** The tracestate header; empty if there is none. */
  readonly state: string;
};

/** The headers of a request that belongs to the span. */
export function traceHeadersOf({ traceId, spanId, flags, state }: TraceParent): TraceHeaders {
  const traceparent = `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
  return state === "" ? { traceparent } : { traceparent, tracestate: state };
}

/** A trace of the caller to which this server adds no spans: upstreams get the caller's context. */
export class ForwardedTrace implements CallTrace {
  readonly traceId: string;
  readonly spanId = undefined;
  readonly #attempt: AttemptSpan;

  constructor(parent: TraceParent) {
    this.traceId = parent.traceId;
    this.#attempt = { headers: traceHeadersOf(parent), end: () => undefined };
  }

  startStage(): undefined {
    return undefined;
  }

  startAttempt(): AttemptSpan {
    return this.#attempt;
  }
}
