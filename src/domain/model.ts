import type { Micros } from "./money.ts";

/** The APIs of model servers. Each has a dialect, listed in src/upstreams/open-upstream.ts. */
export const REMOTE_KINDS = ["openai", "anthropic"] as const;

export type RemoteKind = (typeof REMOTE_KINDS)[number];

export type SandboxSettings = { readonly kind: "sandbox"; readonly delayMs: number };

/** A model on a server with an HTTP API. */
export type RemoteSettings = {
  readonly kind: RemoteKind;
  readonly baseUrl: string;
  /** The environment variable with the upstream's key; undefined if the upstream needs none. */
  readonly apiKeyEnv: string | undefined;
  /** The upstream's name for the model. */
  readonly model: string;
  readonly timeoutMs: number;
};

/** Where a model runs. Upstreams are tried in order when one fails before its first token. */
export type UpstreamSettings = SandboxSettings | RemoteSettings;

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
  /** Maximum number of tokens that the upstream's chat template adds to a prompt. */
  readonly promptOverheadTokens: PromptOverhead;
  readonly inputMicrosPerMillionTokens: Micros;
  readonly outputMicrosPerMillionTokens: Micros;
  readonly upstreams: readonly UpstreamSettings[];
};
