/** The only model of the run. Its prices make every charge need rounding. */
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

export function modelsYaml(model: typeof MODEL, upstreamPort: number): string {
  return `models:
  - id: ${model.id}
    context_window: ${model.contextWindow}
    max_output_tokens: ${model.maxOutputTokens}
    prompt_overhead_tokens: {base: ${model.overhead.base}, per_message: ${model.overhead.perMessage}}
    input_micros_per_million_tokens: ${model.inputPrice}
    output_micros_per_million_tokens: ${model.outputPrice}
    upstream: {kind: openai, base_url: "http://127.0.0.1:${upstreamPort}/v1", model: fake, timeout_ms: 5000}
`;
}
