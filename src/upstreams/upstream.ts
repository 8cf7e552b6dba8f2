import type { TraceHeaders } from "../domain/call-trace.ts";
import type { Delta, FinishReason } from "../domain/output.ts";
import type { Prompt } from "../domain/prompt.ts";
import type { Usage } from "../domain/usage.ts";
import type { Progress } from "./progress.ts";

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

/** A source of replies. */
export type Upstream = {
  /** For logs and metrics. */
  readonly name: string;
  /**
   * Throws an UpstreamFailure when the reply is incomplete. When the signal aborts, it throws the signal's reason.
   * When the signal aborts or the reader stops, it releases its connection; at once, if the reply is incomplete.
   * Records in `progress` that the request has started and, after an abort or a failure, the unread text and the usage
   * reported so far.
   */
  generate(
    prompt: Prompt,
    signal: AbortSignal,
    progress?: Progress,
    trace?: TraceHeaders,
  ): AsyncIterable<UpstreamEvent>;
  /** Reads the key again. Throws if it is missing or malformed. Returns a function that uses it from then on. */
  prepareKey?(): () => void;
  /** Resolves after the running responses have ended. */
  close(): Promise<void>;
};
