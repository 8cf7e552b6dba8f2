import { NO_OPTIONS } from "../../domain/prompt.ts";
import { type Dialect, firstSetOf, type PromptField, type PromptProblem, type UnsizedPrompt } from "../dialect.ts";
import { anthropicBody, hasContent } from "./body.ts";
import { AnthropicReader } from "./reader.ts";

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

/** The lowest top_p that the API accepts together with thinking. */
const MIN_TOP_P = 0.95;

/** What the Messages API cannot express. */
export function anthropicProblem(prompt: UnsizedPrompt): PromptProblem | undefined {
  const { messages, stop, options } = prompt;
  if (!messages.some((message) => message.role !== "system" && hasContent(message))) {
    return problem("messages", "must have a message that is neither blank nor of the system");
  }
  if (stop.some((text) => text.trim() === "")) {
    return problem("stop", "must have a character other than white space in each text, for the upstream of this model");
  }
  if (options === NO_OPTIONS) return undefined;
  if (options.responseFormat?.kind === "json") {
    return problem("response_format", 'must have a schema, with the type "json_schema", for the upstream of this model');
  }
  return firstSetOf(["seed", "presence_penalty", "frequency_penalty", "suffix"], prompt) ?? problemOfThinking(prompt);
}

/** Parameters that the API refuses while the model thinks. A temperature of 1 is the default. */
function problemOfThinking({ temperature = 1, options }: UnsizedPrompt): PromptProblem | undefined {
  const { reasoningEffort = "none", topK, topP = 1, toolChoice } = options;
  if (reasoningEffort === "none") return undefined;
  const description = "cannot be combined with reasoning, for the upstream of this model";
  if (temperature !== 1) return problem("temperature", description);
  if (topK !== undefined) return problem("top_k", description);
  if (topP < MIN_TOP_P) return problem("top_p", description);
  if (toolChoice?.kind === "required" || toolChoice?.kind === "tool") return problem("tool_choice", description);
  return undefined;
}

function problem(field: PromptField, description: string): PromptProblem {
  return { field, description };
}
