import type { FinishReason, Prompt, TokenUsage } from "../domain/generation.ts";

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
  /** Ends, and lets go of its connection, as soon as the signal aborts or the reader stops. */
  generate(prompt: Prompt, signal: AbortSignal): AsyncIterable<UpstreamEvent>;
  close(): Promise<void>;
};
