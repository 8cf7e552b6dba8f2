import type { Micros } from "../domain/money.ts";
import type { FinishReason, PromptMessage, TokenUsage } from "../domain/prompt.ts";

/** What a caller asks for, whatever API it used. */
export type Ask = {
  readonly model: string;
  readonly messages: readonly PromptMessage[];
  /** The caller's wish; the model and its context window may allow less. */
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly stop: readonly string[];
};

/** A generation that has ended and is paid for. */
export type Reply = {
  /** "gen_…" */
  readonly id: string;
  readonly model: string;
  readonly content: string;
  readonly finishReason: FinishReason;
  readonly usage: TokenUsage;
  readonly costMicros: Micros;
  /** After the charge. */
  readonly balanceMicros: Micros;
};

/** What a streamed generation tells: pieces, then the reply. */
export type Piece =
  | { readonly kind: "delta"; readonly id: string; readonly content: string }
  | { readonly kind: "reply"; readonly reply: Reply };
