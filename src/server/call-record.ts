import type { Code } from "@connectrpc/connect";
import type { StartedGeneration } from "../billing/caller.ts";
import type { CallTrace } from "../domain/call-trace.ts";
import type { HttpRoute } from "../telemetry/server-trace.ts";
import type { Admitted } from "./gate/gate.ts";
import type { IncomingCall } from "./incoming-call.ts";

/** A finished call, as the log, the metrics and the trace show it. */
export type CallRecord = {
  readonly call: IncomingCall;
  /** "vx.v1.MeService/GetMe", or "none" for an address without a route. */
  readonly rpc: string;
  /** Only over REST. */
  readonly route: HttpRoute | undefined;
  readonly trace: CallTrace | undefined;
  /** Undefined if the gate did not admit the call. */
  readonly admitted: Admitted | undefined;
  /** The model and the generation of a metered call. */
  readonly model: string | undefined;
  readonly generation: StartedGeneration | undefined;
  /** What an operator changes. */
  readonly change: ChangedByOperator | undefined;
  /** Why the call failed; undefined if it succeeded, or if only its code is known. */
  readonly failure: unknown;
  readonly code: Code | 0;
  readonly endedAtMs: number;
  readonly seconds: number;
};

export type ChangedByOperator = { readonly target: string; readonly amountMicros: bigint | undefined };
