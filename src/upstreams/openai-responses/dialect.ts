import type { ModelTraits } from "../../domain/model.ts";
import { type Dialect, firstSetOf, isExtraField, type PromptProblem, reasoningProblem, type UnsizedPrompt } from "../dialect.ts";
import { MIN_OUTPUT_TOKENS, openaiResponsesBody } from "./body.ts";
import { OpenaiResponsesReader } from "./reader.ts";

/** OpenAI's Responses API, which other servers offer too. Nothing is stored at the upstream. */
export const openaiResponsesDialect: Dialect = {
  path: (basePath) => `${basePath}/responses`,
  headers: (apiKey) => (apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  body: openaiResponsesBody,
  minTokens: MIN_OUTPUT_TOKENS,
  createReader: (reply) => new OpenaiResponsesReader(reply),
};

const UNSUPPORTED = ["stop", "seed", "presence_penalty", "frequency_penalty", "suffix"] as const;

/** What the Responses API cannot express. */
export function openaiResponsesProblem(prompt: UnsizedPrompt, traits: ModelTraits): PromptProblem | undefined {
  return reasoningProblem(prompt) ?? firstSetOf(isExtraField(traits, "top_k") ? UNSUPPORTED : ["top_k", ...UNSUPPORTED], prompt);
}
