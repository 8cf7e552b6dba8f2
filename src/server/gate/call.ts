import type { StartedGeneration } from "../../billing/caller.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Policy } from "../../rules/policy.ts";
import type { AdmittedKey } from "../../store/admit.ts";

export type Protocol = "grpc" | "grpc-web" | "connect" | "rest";

/** One call, whatever the protocol: all that the gate and the stages may see of it. */
export type Call = {
  /** "vx.v1.MeService/GetMe", or what stands for an address that is none. */
  readonly rpc: string;
  readonly policy: Policy;
  readonly protocol: Protocol;
  readonly requestId: string;
  readonly remoteAddress: string;
  /** The target of the request line; looked at for keys that do not belong there, never written anywhere. */
  readonly target: string;
  /** The size of the body, where the caller says it. */
  readonly contentLength: number | undefined;
  /** How large the body may be. */
  readonly maxBodyBytes: number;
  /** All headers of the name: a header that must be single is checked, not guessed. */
  headers(name: string): readonly string[];
  setResponseHeader(name: string, value: string): void;
  /** Aborted when the caller goes away or its deadline passes. Made when somebody asks for it. */
  signal: AbortSignal;
  /** How long it is to the deadline; undefined where the caller named none. */
  remainingMs: () => number | undefined;
  /** The calling key, once the gate has let the call in. */
  key: AdmittedKey | undefined;
  /** Why the call failed, for log and metrics. */
  failure: unknown;
  /** What a metered call asked for, for the log: the id of a model of the catalog. */
  model: string | undefined;
  /** The generation that a metered call started, for the log. */
  generation: StartedGeneration | undefined;
};

/** The calling key of a call that passed the developer gate. */
export function callingKey(call: Call): AdmittedKey {
  if (!call.key) throw new Error("the call did not pass the gate");
  return call.key;
}

/** gRPC's code, which is what a deadline aborts a signal with. */
const DEADLINE_EXCEEDED = 4;

/** A disconnect in the last second before the deadline counts as the deadline: the caller's clock started earlier. */
const DEADLINE_SLACK_MS = 1_000;

/** Why the signal of a call was aborted: its deadline passed, the server stops, or the caller went away. */
export function endReasonOf({ signal, remainingMs }: Call): "deadline_exceeded" | "unavailable" | "gone" {
  if (signal.reason instanceof DomainError) return "unavailable";
  if ((signal.reason as { code?: unknown }).code === DEADLINE_EXCEEDED) return "deadline_exceeded";
  return (remainingMs() ?? Number.POSITIVE_INFINITY) < DEADLINE_SLACK_MS ? "deadline_exceeded" : "gone";
}
