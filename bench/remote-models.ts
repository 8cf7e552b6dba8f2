import { createModelsFile } from "../test/support/models.ts";

/**
 * The path of a models.yaml: model ids with the URLs of their model servers. The context windows fit every body.
 */
export function createRemoteModels(cleanup: AsyncDisposableStack, servers: Readonly<Record<string, string>>): string {
  const models = Object.entries(servers).map(
    ([id, url]) => `  - id: ${id}
    context_window: 100000000
    max_output_tokens: 4096
    capabilities: [tools, images]
    input_micros_per_million_tokens: 1000
    output_micros_per_million_tokens: 1000
    upstream: {kind: openai, base_url: "${url}/v1", model: m}
`,
  );
  const file = createModelsFile(`models:\n${models.join("")}`);
  cleanup.defer(file.remove);
  return file.path;
}
