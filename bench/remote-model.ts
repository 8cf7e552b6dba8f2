import { createModelsFile } from "../test/support/models.ts";
import { startBaseline } from "./program.ts";

/**
 * The path of a models.yaml with one model, "bench", on a model server that returns a short reply. Its context
 * window fits every body.
 */
export async function createRemoteModel(cleanup: AsyncDisposableStack): Promise<string> {
  const url = await startBaseline(cleanup, "upstream-server");
  const file = createModelsFile(`
models:
  - id: bench
    context_window: 100000000
    max_output_tokens: 4096
    input_micros_per_million_tokens: 1000
    output_micros_per_million_tokens: 1000
    upstream: {kind: openai, base_url: "${url}/v1", model: m}
`);
  cleanup.defer(file.remove);
  return file.path;
}
