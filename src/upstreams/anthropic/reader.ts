import type { FinishReason } from "../../domain/output.ts";
import type { Usage } from "../../domain/price.ts";
import type { ResponseReader } from "../dialect.ts";
import { asCount, asObject, asText, type JsonObject, readObject, reportedUsage } from "../http/json-value.ts";
import type { ReplyBuffer } from "../http/reply-buffer.ts";
import { ToolCalls } from "../http/tool-calls.ts";
import { UpstreamFailure } from "../upstream-failure.ts";

export class AnthropicReader implements ResponseReader {
  readonly #reply: ReplyBuffer;
  readonly #toolCalls: ToolCalls;
  #startUsage: JsonObject | undefined;
  /** The signature of the open block of reasoning; it arrives after the text. */
  #signature = "";

  constructor(reply: ReplyBuffer) {
    this.#reply = reply;
    this.#toolCalls = new ToolCalls(reply);
  }

  readEvent(data: string): void {
    const event = readObject(data);
    switch (event.type) {
      case "message_start":
        this.#startUsage = asObject(asObject(event.message)?.usage);
        this.#reply.setStartUsage(usageReportedBy(this.#startUsage, { output_tokens: 0 }));
        break;
      case "content_block_start":
        this.#beginBlock(`${asCount(event.index)}`, asObject(event.content_block));
        break;
      case "content_block_delta":
        this.#readDelta(`${asCount(event.index)}`, asObject(event.delta));
        break;
      case "content_block_stop":
        this.#endReasoning();
        break;
      case "message_delta":
        this.#endContent(asObject(event.delta));
        this.#reply.setUsage(usageReportedBy(this.#startUsage, asObject(event.usage)));
        break;
      case "message_stop":
        this.#endContent(undefined);
        this.#reply.complete();
        break;
      // Pings and event types added in the future.
      default:
    }
  }

  readWhole(body: string): void {
    const message = readObject(body);
    if (message.type !== "message" || !Array.isArray(message.content)) {
      throw new UpstreamFailure("garbled", "the response is not a message");
    }
    for (const [i, block] of message.content.entries()) {
      this.#beginBlock(`${i}`, asObject(block));
      this.#endReasoning();
    }
    this.#endContent(message);
    this.#reply.setUsage(usageReportedBy(undefined, asObject(message.usage)));
    this.#reply.complete();
  }

  /** A block of a whole reply, or the usually empty beginning of a streamed one. */
  #beginBlock(key: string, block: JsonObject | undefined): void {
    this.#endReasoning();
    switch (block?.type) {
      case "text":
        this.#reply.append(asText(block.text) ?? "");
        break;
      case "thinking":
        this.#appendReasoning(asText(block.thinking) ?? "");
        this.#signature = asText(block.signature) ?? "";
        break;
      case "redacted_thinking":
        this.#reply.appendReasoning({ text: "", signature: undefined, encrypted: asText(block.data) });
        break;
      case "tool_use":
        if (this.#toolCalls.has(key)) throw new UpstreamFailure("garbled", "two blocks have the same index");
        this.#toolCalls.append(key, {
          id: asText(block.id),
          name: asText(block.name),
          whole: inputOf(block.input),
        });
        break;
      // Blocks of tools that run at the upstream, and those added in the future.
      default:
    }
  }

  #readDelta(key: string, delta: JsonObject | undefined): void {
    switch (delta?.type) {
      case "text_delta":
        this.#reply.append(asText(delta.text) ?? "");
        break;
      case "thinking_delta":
        this.#appendReasoning(asText(delta.thinking) ?? "");
        break;
      case "signature_delta":
        this.#signature = asText(delta.signature) ?? "";
        break;
      case "input_json_delta":
        // The input of tools that run at the upstream is not part of the reply.
        if (this.#toolCalls.has(key)) this.#toolCalls.append(key, { arguments: asText(delta.partial_json) });
        break;
      default:
    }
  }

  #appendReasoning(text: string): void {
    this.#reply.appendReasoning({ text, signature: undefined, encrypted: undefined });
  }

  #endReasoning(): void {
    if (this.#signature === "") return;
    this.#reply.appendReasoning({ text: "", signature: this.#signature, encrypted: undefined });
    this.#signature = "";
  }

  #endContent(value: JsonObject | undefined): void {
    this.#endReasoning();
    const reason = asText(value?.stop_reason);
    if (reason !== undefined) {
      const stopSequence = reason === "stop_sequence" ? (asText(value?.stop_sequence) ?? null) : undefined;
      this.#reply.setFinishReason(finishReasonOf(reason), stopSequence);
    }
    this.#toolCalls.end();
  }
}

/** The input as JSON text. A stream begins with an empty input and sends its text in deltas. */
function inputOf(input: unknown): string | undefined {
  const object = asObject(input);
  return object && Object.keys(object).length > 0 ? JSON.stringify(object) : undefined;
}

function finishReasonOf(reason: string): FinishReason {
  switch (reason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "tool_use":
      return "tool_calls";
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}

const MAX_ITERATIONS = 256;

/**
 * The usage that the API reports: at the start of a stream, and again at its end with totals that replace those of the
 * start. Cached tokens are not part of its input tokens, so they are added.
 */
function usageReportedBy(start: JsonObject | undefined, end: JsonObject | undefined): Usage | undefined {
  const latest = (name: string): unknown => end?.[name] ?? start?.[name];
  const cachedInput = asCount(latest("cache_read_input_tokens") ?? 0);
  const cacheWrite = asCount(latest("cache_creation_input_tokens") ?? 0);
  const input = sum(asCount(latest("input_tokens")), cachedInput, cacheWrite);
  const compaction = compactionOf(end);
  return reportedUsage({
    inputTokens: sum(input, compaction.input),
    outputTokens: sum(asCount(end?.output_tokens), compaction.output),
    cachedInput,
    cacheWrite,
    cacheWrite1h: asObject(latest("cache_creation"))?.ephemeral_1h_input_tokens,
    reasoning: asObject(end?.output_tokens_details)?.thinking_tokens,
  });
}

/** The tokens that summarized the context, which are not part of the totals. */
function compactionOf(usage: JsonObject | undefined): {
  input: number | undefined;
  output: number | undefined;
} {
  const iterations = Array.isArray(usage?.iterations) ? usage.iterations.slice(0, MAX_ITERATIONS) : [];
  const compactions = iterations.map(asObject).filter((one) => one?.type === "compaction");
  const total = (...names: string[]) => sum(...compactions.flatMap((one) => names.map((name) => asCount(one?.[name] ?? 0))));
  return {
    input: total("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    output: total("output_tokens"),
  };
}

function sum(...counts: (number | undefined)[]): number | undefined {
  let total = 0;
  for (const count of counts) {
    if (count === undefined) return undefined;
    total += count;
  }
  return total;
}
