import type { RemoteSettings } from "../../domain/model.ts";
import type { Dialects } from "../dialect.ts";
import { openaiBody } from "./openai-body.ts";
import { openaiCompletionsDialect } from "./openai-completions.ts";
import { openaiEmbeddingsDialect } from "./openai-embeddings.ts";
import { openaiHeaders } from "./openai-headers.ts";
import { OpenaiReader } from "./openai-reader.ts";

/** Hosts whose newer models refuse max_tokens; all other servers accept it. */
const HOSTS_WITH_MAX_COMPLETION_TOKENS = /(^|\.)(openai\.com|openai\.azure\.com)$/i;

/** Servers with an OpenAI-compatible API for chat completions: vLLM, Ollama, llama.cpp and hosted ones. */
export function createOpenaiDialect({ baseUrl }: Pick<RemoteSettings, "baseUrl">): Dialects {
  const maxTokensName = HOSTS_WITH_MAX_COMPLETION_TOKENS.test(new URL(baseUrl).hostname)
    ? "max_completion_tokens"
    : "max_tokens";
  return {
    path: (basePath) => `${basePath}/chat/completions`,
    headers: openaiHeaders,
    body: (prompt, model) => openaiBody(prompt, model, maxTokensName),
    createReader: (reply) => new OpenaiReader(reply),
    tasks: { embed: openaiEmbeddingsDialect, complete: openaiCompletionsDialect },
  };
}
