import {
  DEFAULT_MAX_MESSAGES,
  DEFAULT_OUTPUT_TOKENS,
  DEFAULT_PROMPT_OVERHEAD,
  type Model,
  SANDBOX_IMAGE_TOKENS,
  TASK_KINDS,
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
  priceListVersion: 0,
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

export type ExampleModel = {
  readonly model: Model;
  /** For a placeholder: why no model of the server can run the example. */
  readonly missing: string | undefined;
};

type ExampleModels = {
  readonly generation: ExampleModel;
  readonly tools: ExampleModel;
  readonly completion: ExampleModel;
  readonly embeddings: ExampleModel;
};

const createsVectors = ({ capabilities }: Model) => capabilities.includes("embeddings");
const generates = (model: Model) => !createsVectors(model);
const callsTools = (model: Model) => generates(model) && model.capabilities.includes("tools");
const completesTexts = (model: Model) => generates(model) && model.upstreams.every(({ kind }) => TASK_KINDS.includes(kind));

/** For each need the cheapest model that meets it, because people run the examples. */
export function exampleModels(models: readonly Model[]): ExampleModels {
  return {
    generation: cheapest(models.filter(generates), "MODEL", "generates text"),
    tools: cheapest(models.filter(callsTools), "MODEL", "has the capability `tools`"),
    completion: cheapest(models.filter(completesTexts), "MODEL", "completes texts"),
    embeddings: cheapest(models.filter(createsVectors), "EMBEDDING_MODEL", "has the capability `embeddings`"),
  };
}

function cheapest(models: readonly Model[], placeholder: string, ability: string): ExampleModel {
  const price = ({ prices }: Model) => prices.input + prices.output;
  const [model] = models.toSorted((one, other) => Number(price(one) - price(other)));
  if (model) return { model, missing: undefined };
  return {
    model: { ...(BUILT_IN_MODELS[0] as Model), id: placeholder },
    missing: `No model of this server ${ability}: \`${placeholder}\` in the example is a placeholder.`,
  };
}
