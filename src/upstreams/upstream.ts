import type { FinishReason, Prompt, TokenUsage } from "../domain/prompt.ts";
import type { Progress } from "./runner/progress.ts";

/** Pieces of the reply, none of them empty, then exactly one end. */
export type UpstreamEvent =
  | { readonly kind: "delta"; readonly content: string }
  | {
      readonly kind: "done";
      readonly finishReason: FinishReason;
      /** What the upstream reports; undefined when it reports nothing that can be true. */
      readonly usage: TokenUsage | undefined;
    };

/** Whatever generates replies. */
export type Upstream = {
  /** For logs and metrics. */
  readonly name: string;
  /**
   * Throws an UpstreamFailure when the reply does not come to its end. When the signal aborts it lets go of its
   * connection at once and throws the signal's reason; when the reader stops, it lets go too. Records in the progress
   * that the request has started, and after an abort the text that was not read.
   */
  generate(prompt: Prompt, signal: AbortSignal, progress?: Progress): AsyncIterable<UpstreamEvent>;
  /** Once what it still does has ended. */
  close(): Promise<void>;
};
