import type { AttemptSpan, CallTrace, TraceHeaders } from "./call-trace.ts";

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
