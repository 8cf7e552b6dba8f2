import type { FinishReason } from "../domain/output.ts";
import type { Prompt, PromptMessage } from "../domain/prompt.ts";
import { textsOfMessage } from "../domain/prompt-texts.ts";
import type { Dialect, ResponseReader } from "./dialect.ts";
import { asCount, asObject, asText, type JsonObject, reportedUsage } from "./http/json-value.ts";
import type { ReplyBuffer } from "./http/reply-buffer.ts";
import { readObject } from "./http/upstream-error.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

const VERSION = "2023-06-01";

/** Anthropic's Messages API. */
export const anthropicDialect: Dialect = {
  // Anthropic's own clients use the base URL without the version; other clients include it.
  path: (basePath) => `${basePath.endsWith("/v1") ? basePath : `${basePath}/v1`}/messages`,
  headers: (apiKey) => ({
    "anthropic-version": VERSION,
    ...(apiKey === undefined ? {} : { "x-api-key": apiKey }),
  }),
  body: (prompt, model) => ({
    model,
    messages: joinTurns(prompt),
    max_tokens: prompt.maxTokens,
    system: systemOf(prompt),
    // Anthropic's maximum is 1, ours is 2: higher values become 1.
    temperature: prompt.temperature === undefined ? undefined : Math.min(prompt.temperature, 1),
    stop_sequences: prompt.stop.length === 0 ? undefined : prompt.stop,
    stream: true,
  }),
  createReader: (reply) => new AnthropicReader(reply),
};

type Content = string | { readonly type: "text"; readonly text: string }[];

/** The API has a separate field for system messages, wherever they are in the conversation. */
function systemOf({ messages }: Prompt): Content | undefined {
  const [first, ...others] = messages.filter(({ role }) => role === "system").map(textOf);
  return first === undefined ? undefined : others.reduce(appendText, first);
}

/** Roles must alternate, so consecutive messages of one role become one message with several blocks. */
function joinTurns({ messages }: Prompt): { role: string; content: Content }[] {
  const turns: { role: string; content: Content }[] = [];
  for (const message of messages) {
    const { role } = message;
    const content = textOf(message);
    const last = turns.at(-1);
    if (role === "system") continue;
    if (last?.role === role) last.content = appendText(last.content, content);
    else turns.push({ role, content });
  }
  return turns;
}

function textOf(message: PromptMessage): string {
  return [...textsOfMessage(message)].join("");
}

function appendText(content: Content, text: string): Content {
  const blocks = typeof content === "string" ? [block(content)] : content;
  blocks.push(block(text));
  return blocks;
}

function block(text: string): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}

class AnthropicReader implements ResponseReader {
  readonly #reply: ReplyBuffer;
  #input: InputCounts | undefined;

  constructor(reply: ReplyBuffer) {
    this.#reply = reply;
  }

  readEvent(data: string): void {
    const event = readObject(data);
    switch (event.type) {
      case "message_start":
        this.#input = inputCountsOf(asObject(asObject(event.message)?.usage));
        break;
      case "content_block_delta":
        this.#readText(asObject(event.delta), "text_delta");
        break;
      case "message_delta":
        this.#readFinishReason(asObject(event.delta));
        this.#readUsage(asObject(event.usage));
        break;
      case "message_stop":
        this.#reply.complete();
        break;
      // Pings, block boundaries and event types added in the future.
      default:
    }
  }

  readWhole(body: string): void {
    const message = readObject(body);
    if (message.type !== "message" || !Array.isArray(message.content)) {
      throw new UpstreamFailure("garbled", "the response is not a message");
    }
    for (const part of message.content) this.#readText(asObject(part), "text");
    this.#readFinishReason(message);
    const usage = asObject(message.usage);
    this.#input = inputCountsOf(usage);
    this.#readUsage(usage);
    this.#reply.complete();
  }

  /** Thinking is not part of the reply. */
  #readText(part: JsonObject | undefined, type: string): void {
    if (part?.type === type) this.#reply.append(asText(part.text) ?? "");
  }

  #readFinishReason(value: JsonObject | undefined): void {
    const reason = asText(value?.stop_reason);
    if (reason !== undefined) this.#reply.setFinishReason(finishReasonOf(reason));
  }

  #readUsage(usage: JsonObject | undefined): void {
    this.#reply.setUsage(reportedUsage({ ...this.#input, outputTokens: usage?.output_tokens }));
  }
}

type InputCounts = {
  readonly inputTokens: number | undefined;
  readonly cachedInput: number | undefined;
  readonly cacheWrite: number | undefined;
};

/** The API does not count cached tokens as input tokens, so they are added to the total. */
function inputCountsOf(usage: JsonObject | undefined): InputCounts {
  const input = asCount(usage?.input_tokens);
  const cachedInput = asCount(usage?.cache_read_input_tokens ?? 0);
  const cacheWrite = asCount(usage?.cache_creation_input_tokens ?? 0);
  const areValid = input !== undefined && cachedInput !== undefined && cacheWrite !== undefined;
  return { inputTokens: areValid ? input + cachedInput + cacheWrite : undefined, cachedInput, cacheWrite };
}

function finishReasonOf(reason: string): FinishReason {
  return reason === "max_tokens" || reason === "model_context_window_exceeded" ? "length" : "stop";
}
