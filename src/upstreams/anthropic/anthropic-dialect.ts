import type { Dialect } from "../dialect.ts";
import { anthropicBody } from "./anthropic-body.ts";
import { AnthropicReader } from "./anthropic-reader.ts";

const VERSION = "2023-06-01";

/** Anthropic's Messages API. */
export const anthropicDialect: Dialect = {
  // Anthropic's own clients use the base URL without the version; other clients include it.
  path: (basePath) => `${basePath.endsWith("/v1") ? basePath : `${basePath}/v1`}/messages`,
  headers: (apiKey) => ({
    "anthropic-version": VERSION,
    ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
  }),
  body: anthropicBody,
  createReader: (reply) => new AnthropicReader(reply),
};
