import type { Prices } from "./price.ts";

/** The APIs of model servers. Each has a dialect, listed in src/upstreams/dialects.ts. */
export const REMOTE_KINDS = ["openai", "openai-responses", "anthropic"] as const;

export type RemoteKind = (typeof REMOTE_KINDS)[number];

type Shared = {
  /** The share of calls among the upstreams with a weight; undefined for an upstream that is used when these fail. */
  readonly weight?: number | undefined;
  /** What the operator pays for calls, in the form of prices; undefined if it is not known. */
  readonly cost?: Prices | undefined;
};

export type SandboxSettings = Shared & { readonly kind: "sandbox"; readonly delayMs: number };

/** A model on a server with an HTTP API. */
export type RemoteSettings = Shared & {
  readonly kind: RemoteKind;
  readonly baseUrl: string;
  /** The environment variable with the upstream's key; undefined if the upstream needs none. */
  readonly apiKeyEnv: string | undefined;
  /** The path of the file with the key, in place of a variable. */
  readonly apiKeyFile?: string | undefined;
  /** The upstream's name for the model. */
  readonly model: string;
  readonly timeoutMs: number;
};

/** Where a model runs. Another upstream is tried when one fails before its first token. */
export type UpstreamSettings = SandboxSettings | RemoteSettings;

/** The kinds of upstreams that can create embeddings and complete texts. */
export const TASK_KINDS: readonly UpstreamSettings["kind"][] = ["sandbox", "openai"];

type PromptOverhead = { readonly base: number; readonly perMessage: number };

/** What a model can do besides replying to text with text. A request that needs more is refused. */
export const CAPABILITIES = ["tools", "images", "json_schema", "reasoning", "embeddings"] as const;

export type Capability = (typeof CAPABILITIES)[number];

/** Defaults for models.yaml. */
export const DEFAULT_OUTPUT_TOKENS = 4_096;
export const DEFAULT_MAX_MESSAGES = 200;
export const DEFAULT_IMAGE_TOKENS = 4_096;
/** What each image counts in the sandbox. */
export const SANDBOX_IMAGE_TOKENS = 85;
export const DEFAULT_PROMPT_OVERHEAD: PromptOverhead = { base: 64, perMessage: 16 };

/** A model of the catalog, as models.yaml describes it. */
export type Model = {
  readonly id: string;
  /** Other names that callers may use. */
  readonly aliases: readonly string[];
  readonly ownedBy: string;
  readonly createdSeconds: number;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  /** The output limit of a call that gives none; at most maxOutputTokens. */
  readonly defaultOutputTokens: number;
  /** Maximum number of tokens that the upstream's chat template adds to a prompt. */
  readonly promptOverheadTokens: PromptOverhead;
  readonly imageTokens: number;
  /** Maximum number of messages of a request in the format of OpenAI or Anthropic. */
  readonly maxMessages: number;
  readonly capabilities: readonly Capability[];
  /** Names of request fields that upstreams of the same format get unchanged. */
  readonly extraFields: readonly string[];
  readonly prices: Prices;
  /** The version of the prices in the database; 0 until they are registered there. */
  readonly priceVersion: number;
  /** The version of the account's own prices; 0 for those of the model. */
  readonly priceListVersion: number;
  readonly upstreams: readonly UpstreamSettings[];
};

/** What the requests to the upstreams of a model depend on, besides the prompt. */
export type ModelTraits = Pick<Model, "capabilities" | "extraFields">;
