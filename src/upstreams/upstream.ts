import type { CallTrace, TraceHeaders } from "../domain/call-trace.ts";
import type { Model } from "../domain/model.ts";
import type { Delta, FinishReason } from "../domain/output.ts";
import type { Prices, Usage } from "../domain/price.ts";
import type { Prompt } from "../domain/prompt.ts";

export type UpstreamEnd = {
  readonly kind: "done";
  readonly finishReason: FinishReason;
  /** The usage that the upstream reports; undefined if it reports none or an invalid one. */
  readonly usage: Usage | undefined;
  /** The stop text that ended the reply; undefined if the upstream reports none, null if it does not report which. */
  readonly stopSequence?: string | null | undefined;
  /** Only for the task "embed": a vector for each message, in their order. */
  readonly vectors?: readonly Float32Array[] | undefined;
};

/** Non-empty pieces of the reply, then exactly one end. */
export type UpstreamEvent = Delta | UpstreamEnd;

export type Upstream = {
  readonly name: string;
  /**
   * Throws an UpstreamFailure when the reply is incomplete. When the signal aborts, it throws the signal's reason.
   * When the signal aborts or the reader stops, it releases its connection; at once, if the reply is incomplete.
   * Records in `progress` that the request has started and, after an abort or a failure, the unread text and the usage
   * reported so far.
   */
  generate(prompt: Prompt, signal: AbortSignal, progress?: Progress, trace?: TraceHeaders): AsyncIterable<UpstreamEvent>;
  /** Reads the key again. Throws if it is missing or malformed. Returns a function that uses it from then on. */
  prepareKey?(): () => void;
  /** Resolves after the running responses have ended. */
  close(): Promise<void>;
};

/** One generation for the upstreams of its model. */
export type UpstreamCall = {
  readonly model: Model;
  readonly prompt: Prompt;
  /** The account whose share of the slots is used and whose failures are counted. */
  readonly accountId: string;
  /** Selects the upstream among those with a weight; undefined for a random one. */
  readonly idempotencyKey: string | undefined;
  readonly requestId: string;
  readonly trace: CallTrace | undefined;
  readonly signal: AbortSignal;
  readonly progress: Progress;
};

/** The last usage that an upstream reported for a reply. If it was reported before the finish reason, only its input is final. */
export type UsageReport = { readonly usage: Usage; readonly isFinal: boolean };

/**
 * What a call has done at its upstreams so far. It is shared state, not an event, because a caller can
 * disconnect between two events, and the charge depends on the state at that moment.
 */
export class Progress {
  /** A request was started at an upstream, and that upstream has not failed. */
  wasSent = false;
  /** The upstream of the last attempt; undefined before the first attempt. */
  upstream: string | undefined;
  /** What the operator pays there; undefined if it is not known. */
  cost: Prices | undefined;
  /** All texts that were received from the upstream but not yet read when the call was cancelled. */
  unread = "";
  /** The report for a reply that was cancelled or failed; undefined if the upstream had not reported any usage. */
  report: UsageReport | undefined;
}
