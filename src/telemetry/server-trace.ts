import type { CallTrace } from "../domain/call-trace.ts";
import type { Micros } from "../domain/money.ts";
import type { TraceParent } from "../domain/trace-parent.ts";
import type { Usage } from "../domain/usage.ts";

/** The trace of a call that this server exports. */
export type ServerTrace = CallTrace & {
  /** Call this once, when the call has ended and its charge is settled. */
  end(call: TracedCall): void;
};

/** Starts the span of a call. Times are by performance.now(). */
export type StartTrace = (parent: TraceParent | undefined, startedAtMs: number) => ServerTrace;

/** The route of a call over REST. */
export type HttpRoute = { readonly verb: string; readonly path: string };

/** What the span of a finished call shows. It has no content, no key and no address of the caller. */
export type TracedCall = {
  /** "vx.v1.MeService/GetMe", or "none" for an address without a route. */
  readonly rpc: string;
  readonly protocol: string;
  readonly route: HttpRoute | undefined;
  readonly code: string;
  readonly status: number | undefined;
  /** The code of the error; undefined if the call succeeded. */
  readonly reason: string | undefined;
  /** Whether the server is the cause of the failure. */
  readonly isServerFailure: boolean;
  readonly requestId: string;
  readonly accountId: string | undefined;
  readonly keyId: string | undefined;
  readonly operatorId: string | undefined;
  readonly model: string | undefined;
  readonly generationId: string | undefined;
  readonly charge: { readonly usage: Usage; readonly amountMicros: Micros } | undefined;
  readonly endedAtMs: number;
};
