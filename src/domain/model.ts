import type { Micros } from "./money.ts";

/** Where a model runs. Upstreams are tried in order when one fails before its first token. */
export type UpstreamSettings =
  | { readonly kind: "sandbox"; readonly delayMs: number }
  | {
      readonly kind: "openai" | "anthropic";
      readonly baseUrl: string;
      /** The environment variable with the upstream's key; undefined if the upstream needs none. */
      readonly apiKeyEnv: string | undefined;
      /** The upstream's name for the model. */
      readonly model: string;
      readonly timeoutMs: number;
    };

export type PromptOverhead = { readonly base: number; readonly perMessage: number };

/** Defaults for models.yaml. */
export const DEFAULT_OUTPUT_TOKENS = 4_096;
export const DEFAULT_PROMPT_OVERHEAD: PromptOverhead = { base: 64, perMessage: 16 };

/** A model of the catalog, as models.yaml describes it. */
export type Model = {
  readonly id: string;
  readonly ownedBy: string;
  readonly createdSeconds: number;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  /** The output limit of a call that gives none; at most maxOutputTokens. */
  readonly defaultOutputTokens: number;
  /** The most tokens that the upstream's chat template adds to a prompt. */
  readonly promptOverheadTokens: PromptOverhead;
  readonly inputMicrosPerMillionTokens: Micros;
  readonly outputMicrosPerMillionTokens: Micros;
  readonly upstreams: readonly UpstreamSettings[];
};
