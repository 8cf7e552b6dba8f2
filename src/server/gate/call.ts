import type { StartedGeneration } from "../../billing/caller.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Policy } from "../../rules/policy.ts";
import type { AdmittedKey } from "../../store/admit.ts";

export type Protocol = "grpc" | "grpc-web" | "connect" | "rest";

/** One call, whatever the protocol, as the gate and the later stages see it. */
export type Call = {
  /** "vx.v1.MeService/GetMe", or "none" for an address without a route. */
  readonly rpc: string;
  readonly policy: Policy;
  readonly protocol: Protocol;
  readonly requestId: string;
  readonly remoteAddress: string;
  /** The target of the request line; checked for keys, which must not be there, and never logged. */
  readonly target: string;
  /** The size of the body, if the caller announces it. */
  readonly contentLength: number | undefined;
  readonly maxBodyBytes: number;
  /** All values of the header: code that needs a single value checks for duplicates. */
  headers(name: string): readonly string[];
  setResponseHeader(name: string, value: string): void;
  /**
   * Aborted when the caller disconnects, its deadline passes or the server stops. May be created on first
   * access.
   */
  signal: AbortSignal;
  /** Milliseconds until the deadline; undefined if the caller set none. */
  remainingMs: () => number | undefined;
  /** The calling key; set when the gate admits the call. */
  key: AdmittedKey | undefined;
  /** Why the call failed, for log and metrics. */
  failure: unknown;
  /** The catalog id of the model of a metered call, for the log. */
  model: string | undefined;
  /** The generation that a metered call started, for the log. */
  generation: StartedGeneration | undefined;
};

/** The calling key of a call that passed the developer gate. */
export function callingKey(call: Call): AdmittedKey {
  if (!call.key) throw new Error("the call did not pass the gate");
  return call.key;
}

/** The gRPC code with which a deadline aborts a signal. */
const DEADLINE_EXCEEDED = 4;

/** A disconnect in the last second before the deadline counts as the deadline: the caller's clock started earlier. */
const DEADLINE_SLACK_MS = 1_000;

/**
 * Why the signal of a call was aborted: the deadline passed, the server stops, or the caller disconnected.
 */
export function endReasonOf({ signal, remainingMs }: Call): "deadline_exceeded" | "unavailable" | "gone" {
  if (signal.reason instanceof DomainError) return "unavailable";
  if ((signal.reason as { code?: unknown }).code === DEADLINE_EXCEEDED) return "deadline_exceeded";
  return (remainingMs() ?? Number.POSITIVE_INFINITY) < DEADLINE_SLACK_MS ? "deadline_exceeded" : "gone";
}
