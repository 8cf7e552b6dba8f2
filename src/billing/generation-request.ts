import type { Micros } from "../domain/money.ts";
import type { Delta, FinishReason, Output } from "../domain/output.ts";
import type { Format, PromptMessage, PromptOptions } from "../domain/prompt.ts";
import type { Usage } from "../domain/usage.ts";

/** A request for a generation, the same for every API. */
export type GenerationRequest = {
  readonly format: Format;
  readonly model: string;
  readonly messages: readonly PromptMessage[];
  /** The field of each message, for errors; undefined if they are `messages[0]`, `messages[1]` and so on. */
  readonly fields?: readonly string[];
  /** The limit that the caller requested; the model and its context window may lower it. */
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly stop: readonly string[];
  readonly options: PromptOptions;
  /** The caller's end user, for the ledger; empty if unknown. */
  readonly user: string;
  /** The maximum cost; the output limit is lowered until it fits. */
  readonly maxCostMicros: Micros | undefined;
};

/** A generation that has ended and is charged. */
export type Reply = {
  /** "gen_…" */
  readonly id: string;
  readonly model: string;
  readonly output: Output;
  /** Only for the task "embed": a vector for each message, in their order. */
  readonly vectors?: readonly Float32Array[] | undefined;
  readonly finishReason: FinishReason;
  /** The output limit, if it is lower than the call asked for. */
  readonly loweredMaxTokens: number | undefined;
  /** The stop text that ended the reply; undefined if none is known to have, null if it is not known which. */
  readonly stopSequence?: string | null | undefined;
  readonly usage: Usage;
  readonly costMicros: Micros;
  /** The balance after the charge. */
  readonly balanceMicros: Micros;
};

/** An event of a streamed generation: pieces, then the reply. */
export type Piece =
  | { readonly kind: "delta"; readonly id: string; readonly model: string; readonly delta: Delta }
  | { readonly kind: "reply"; readonly reply: Reply };
