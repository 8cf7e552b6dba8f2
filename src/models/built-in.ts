import {
  DEFAULT_MAX_MESSAGES,
  DEFAULT_OUTPUT_TOKENS,
  DEFAULT_PROMPT_OVERHEAD,
  type Model,
  SANDBOX_IMAGE_TOKENS,
} from "../domain/model.ts";
import { tokenPrices } from "../domain/price.ts";

const SANDBOX = {
  ownedBy: "vx",
  createdSeconds: 1_763_683_200,
  defaultOutputTokens: DEFAULT_OUTPUT_TOKENS,
  promptOverheadTokens: DEFAULT_PROMPT_OVERHEAD,
  imageTokens: SANDBOX_IMAGE_TOKENS,
  maxMessages: DEFAULT_MAX_MESSAGES,
  aliases: [],
  capabilities: ["tools", "images", "json_schema", "reasoning"],
  extraFields: [],
  priceVersion: 0,
  upstreams: [{ kind: "sandbox", delayMs: 0 }],
} as const;

/** The models used without a models.yaml, for integration and tests. */
export const BUILT_IN_MODELS: readonly Model[] = [
  {
    ...SANDBOX,
    id: "vx-sandbox-small",
    contextWindow: 8_192,
    maxOutputTokens: 4_096,
    prices: tokenPrices(250_000n, 1_250_000n),
  },
  {
    ...SANDBOX,
    id: "vx-sandbox-large",
    contextWindow: 128_000,
    maxOutputTokens: 32_000,
    prices: tokenPrices(1_000_000n, 5_000_000n),
  },
  {
    ...SANDBOX,
    id: "vx-sandbox-embed",
    contextWindow: 8_192,
    maxOutputTokens: 1,
    defaultOutputTokens: 1,
    capabilities: ["embeddings"],
    prices: tokenPrices(20_000n, 0n),
  },
];
