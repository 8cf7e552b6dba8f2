import type { Micros } from "../domain/money.ts";
import type { FinishReason, PromptMessage, TokenUsage } from "../domain/prompt.ts";

/** A request for a generation, the same for every API. */
export type GenerationRequest = {
  readonly model: string;
  readonly messages: readonly PromptMessage[];
  /** The limit that the caller requested; the model and its context window may lower it. */
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly stop: readonly string[];
};

/** A generation that has ended and is charged. */
export type Reply = {
  /** "gen_…" */
  readonly id: string;
  readonly model: string;
  readonly content: string;
  readonly finishReason: FinishReason;
  readonly usage: TokenUsage;
  readonly costMicros: Micros;
  /** The balance after the charge. */
  readonly balanceMicros: Micros;
};

/** An event of a streamed generation: pieces, then the reply. */
export type Piece =
  | { readonly kind: "delta"; readonly id: string; readonly content: string }
  | { readonly kind: "reply"; readonly reply: Reply };
