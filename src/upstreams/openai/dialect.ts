import type { ModelTraits, RemoteSettings } from "../../domain/model.ts";
import { type Dialects, firstSetOf, isExtraField, type PromptProblem, reasoningProblem, type UnsizedPrompt } from "../dialect.ts";
import { openaiBody, openaiHeaders } from "./body.ts";
import { openaiCompletionsDialect } from "./completions.ts";
import { openaiEmbeddingsDialect } from "./embeddings.ts";
import { OpenaiReader } from "./reader.ts";

/** Hosts whose newer models refuse max_tokens; all other servers accept it. */
const HOSTS_WITH_MAX_COMPLETION_TOKENS = /(^|\.)(openai\.com|openai\.azure\.com)$/i;

/** Servers with an OpenAI-compatible API for chat completions: vLLM, Ollama, llama.cpp and hosted ones. */
export function createOpenaiDialect({ baseUrl }: Pick<RemoteSettings, "baseUrl">): Dialects {
  const maxTokensName = HOSTS_WITH_MAX_COMPLETION_TOKENS.test(new URL(baseUrl).hostname) ? "max_completion_tokens" : "max_tokens";
  return {
    path: (basePath) => `${basePath}/chat/completions`,
    headers: openaiHeaders,
    body: (prompt, model) => openaiBody(prompt, model, maxTokensName),
    createReader: (reply) => new OpenaiReader(reply),
    tasks: { embed: openaiEmbeddingsDialect, complete: openaiCompletionsDialect },
  };
}

/** What chat completions cannot express. */
export function openaiProblem(prompt: UnsizedPrompt, traits: ModelTraits): PromptProblem | undefined {
  if (prompt.options.task?.kind === "complete") return undefined;
  const message = prompt.messages.findIndex(
    ({ role, content }) => role === "tool" && typeof content !== "string" && content.some(({ kind }) => kind === "image"),
  );
  if (message >= 0) {
    return {
      field: "messages",
      message,
      description: "must not have images: the upstream of this model accepts only text as the result of a tool",
    };
  }
  const problem = isExtraField(traits, "reasoning_content") ? undefined : reasoningProblem(prompt);
  return problem ?? firstSetOf(isExtraField(traits, "top_k") ? ["suffix"] : ["top_k", "suffix"], prompt);
}
