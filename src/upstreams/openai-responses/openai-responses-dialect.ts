import type { Dialect } from "../dialect.ts";
import { MIN_OUTPUT_TOKENS, openaiResponsesBody } from "./openai-responses-body.ts";
import { OpenaiResponsesReader } from "./openai-responses-reader.ts";

/** OpenAI's Responses API, which other servers offer too. Nothing is stored at the upstream. */
export const openaiResponsesDialect: Dialect = {
  path: (basePath) => `${basePath}/responses`,
  headers: (apiKey) => (apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  body: openaiResponsesBody,
  minTokens: MIN_OUTPUT_TOKENS,
  createReader: (reply) => new OpenaiResponsesReader(reply),
};
