import type { RemoteSettings } from "../domain/model.ts";
import type { FinishReason } from "../domain/output.ts";
import type { Usage } from "../domain/usage.ts";
import type { Dialect, ResponseReader } from "./dialect.ts";
import { asObject, asText, firstObject, type JsonObject, reportedUsage } from "./http/json-value.ts";
import type { ReplyBuffer } from "./http/reply-buffer.ts";
import { readObject } from "./http/upstream-error.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Hosts whose newer models refuse max_tokens; all other servers accept it. */
const HOSTS_WITH_MAX_COMPLETION_TOKENS = /(^|\.)(openai\.com|openai\.azure\.com)$/i;

/** Servers with an OpenAI-compatible API: vLLM, Ollama, llama.cpp and hosted ones. */
export function createOpenaiDialect({ baseUrl }: Pick<RemoteSettings, "baseUrl">): Dialect {
  const maxTokensName = HOSTS_WITH_MAX_COMPLETION_TOKENS.test(new URL(baseUrl).hostname)
    ? "max_completion_tokens"
    : "max_tokens";
  return {
    path: (basePath) => `${basePath}/chat/completions`,
    headers: (apiKey) => (apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    body: (prompt, model) => ({
      model,
      messages: prompt.messages.map(({ role, content }) => ({ role, content })),
      [maxTokensName]: prompt.maxTokens,
      temperature: prompt.temperature,
      stop: prompt.stop.length === 0 ? undefined : prompt.stop,
      // Always stream, so that the output is known when a caller disconnects.
      stream: true,
      stream_options: { include_usage: true },
    }),
    createReader: (reply) => new OpenaiReader(reply),
  };
}

class OpenaiReader implements ResponseReader {
  readonly #reply: ReplyBuffer;

  constructor(reply: ReplyBuffer) {
    this.#reply = reply;
  }

  readEvent(data: string): void {
    if (data === "[DONE]") {
      this.#reply.complete();
      return;
    }
    const chunk = readObject(data);
    this.#read(chunk, asObject(firstObject(chunk.choices)?.delta));
  }

  readWhole(body: string): void {
    const completion = readObject(body);
    const choice = firstObject(completion.choices);
    if (!choice) throw new UpstreamFailure("garbled", "the response is not a chat completion");
    this.#read(completion, asObject(choice.message));
    this.#reply.complete();
  }

  #read(value: JsonObject, message: JsonObject | undefined): void {
    this.#reply.append(asText(message?.content) ?? "");
    const reason = asText(firstObject(value.choices)?.finish_reason);
    if (reason !== undefined) this.#reply.setFinishReason(finishReasonOf(reason));
    // Some servers report usage in every chunk: the last valid report counts.
    const usage = asObject(value.usage);
    if (usage) this.#reply.setUsage(usageReportedBy(usage));
  }
}

/** Cached tokens and reasoning are part of the totals. */
function usageReportedBy(usage: JsonObject): Usage | undefined {
  const input = asObject(usage.prompt_tokens_details);
  const output = asObject(usage.completion_tokens_details);
  return reportedUsage({
    inputTokens: usage.prompt_tokens,
    outputTokens: usage.completion_tokens,
    cachedInput: input?.cached_tokens,
    cacheWrite: input?.cache_write_tokens,
    imageTokens: input?.image_tokens,
    reasoning: output?.reasoning_tokens,
  });
}

/** Only "length" means a truncated reply; content filters, tool calls and unknown reasons count as "stop". */
function finishReasonOf(reason: string): FinishReason {
  return reason === "length" ? "length" : "stop";
}
