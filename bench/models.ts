import { createModelsFile } from "../test/support/models.ts";

/**
 * A models.yaml with one model, "bench", on an OpenAI-compatible server. Its context window fits every body.
 */
export function createRemoteModel(upstreamUrl: string) {
  return createModelsFile(`
models:
  - id: bench
    context_window: 100000000
    max_output_tokens: 4096
    input_micros_per_million_tokens: 1000
    output_micros_per_million_tokens: 1000
    upstream: {kind: openai, base_url: "${upstreamUrl}/v1", model: m}
`);
}
