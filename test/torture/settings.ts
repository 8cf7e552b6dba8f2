import { PRICED_MODEL, type PriceSet, pricesYaml, UPSTREAM_COST } from "./prices.ts";

/** The model of most calls. Its prices make every charge need rounding. */
export const MODEL = {
  id: "torture",
  contextWindow: 100_000,
  maxOutputTokens: 1_000,
  inputPrice: 1_300_001n,
  outputPrice: 2_700_003n,
  overhead: { base: 40, perMessage: 10 },
} as const;

/** The maximum input tokens of a prompt with one message: its bytes, its delimiters and the chat template. */
export function maxInputTokens(promptBytes: number): bigint {
  return BigInt(promptBytes + 4 + MODEL.overhead.base + MODEL.overhead.perMessage);
}

export const OPERATOR_TOKEN = "operator-token-of-the-torture";

/** Both models, whose upstream is the same. */
export function modelsYaml(prices: PriceSet, upstreamPort: number): string {
  const fixed = `{input: ${MODEL.inputPrice}, output: ${MODEL.outputPrice}}`;
  const model = (id: string, ofModel: string) => `
  - id: ${id}
    context_window: ${MODEL.contextWindow}
    max_output_tokens: ${MODEL.maxOutputTokens}
    prompt_overhead_tokens: {base: ${MODEL.overhead.base}, per_message: ${MODEL.overhead.perMessage}}
    prices: ${ofModel}
    upstream: {kind: openai, base_url: "http://127.0.0.1:${upstreamPort}/v1", model: fake, timeout_ms: 5000, cost: ${UPSTREAM_COST}}
`;
  return `models:${model(MODEL.id, fixed)}${model(PRICED_MODEL, pricesYaml(prices))}`;
}
