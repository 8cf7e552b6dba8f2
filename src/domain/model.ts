import type { Micros } from "./money.ts";

/** Where a model runs; tried in order when one fails before its first token. */
export type UpstreamSettings =
  | { readonly kind: "sandbox"; readonly delayMs: number }
  | {
      readonly kind: "openai" | "anthropic";
      readonly baseUrl: string;
      /** The name of the environment variable with the upstream's key; none if it wants no key. */
      readonly apiKeyEnv: string | undefined;
      /** What the upstream calls the model. */
      readonly model: string;
      readonly timeoutMs: number;
    };

export type PromptOverhead = { readonly base: number; readonly perMessage: number };

/** What applies where models.yaml names no other value. */
export const DEFAULT_OUTPUT_TOKENS = 4_096;
export const DEFAULT_PROMPT_OVERHEAD: PromptOverhead = { base: 64, perMessage: 16 };

/** A model that can be asked, as models.yaml describes it. */
export type Model = {
  readonly id: string;
  readonly ownedBy: string;
  readonly createdSeconds: number;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  /** The output limit of a call that names none, within maxOutputTokens. */
  readonly defaultOutputTokens: number;
  /** The most tokens that the upstream's chat template adds to a prompt. */
  readonly promptOverheadTokens: PromptOverhead;
  readonly inputMicrosPerMillionTokens: Micros;
  readonly outputMicrosPerMillionTokens: Micros;
  readonly upstreams: readonly UpstreamSettings[];
};
