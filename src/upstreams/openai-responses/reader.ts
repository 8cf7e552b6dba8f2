import type { FinishReason } from "../../domain/output.ts";
import type { Usage } from "../../domain/price.ts";
import { joinItemId, type ResponseReader } from "../dialect.ts";
import { asCount, asObject, asText, failureOf, type JsonObject, readObject, reportedUsage } from "../http/json-value.ts";
import type { ReplyBuffer } from "../http/reply-buffer.ts";
import { ToolCalls } from "../http/tool-calls.ts";
import { UpstreamFailure } from "../upstream-failure.ts";

export class OpenaiResponsesReader implements ResponseReader {
  readonly #reply: ReplyBuffer;
  readonly #toolCalls: ToolCalls;
  /** Some servers send the reasoning and a summary of it: the first kind is read. */
  #reasoningType: unknown;
  #hasReasoningText = false;
  #isRefused = false;
  #isEmpty = true;

  constructor(reply: ReplyBuffer) {
    this.#reply = reply;
    this.#toolCalls = new ToolCalls(reply);
  }

  readEvent(data: string): void {
    // Sent by servers that end all streams like that.
    if (data === "[DONE]") return;
    const event = readObject(data);
    switch (event.type) {
      case "response.output_text.delta":
        this.#appendText(event.delta);
        break;
      case "response.refusal.delta":
        this.#isRefused = true;
        this.#appendText(event.delta);
        break;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.#reasoningType ??= event.type;
        if (event.type === this.#reasoningType) this.#appendReasoning(event.delta);
        break;
      case "response.reasoning_summary_part.added":
        if (this.#hasReasoningText) this.#appendReasoning("\n\n");
        break;
      case "response.output_item.added":
        this.#readCall(event, asObject(event.item), false);
        break;
      case "response.function_call_arguments.delta":
        this.#isEmpty = false;
        this.#toolCalls.append(keyOf(event), { arguments: asText(event.delta) });
        break;
      case "response.output_item.done":
        this.#readCall(event, asObject(event.item), true);
        this.#endReasoning(asObject(event.item));
        break;
      case "response.completed":
      case "response.incomplete":
        this.#end(asObject(event.response) ?? {});
        break;
      case "response.failed":
        throw failureOf(asObject(asObject(event.response)?.error) ?? {});
      case "error":
        throw failureOf(event);
      // Boundaries, repetitions of earlier parts, and event types added in the future.
      default:
    }
  }

  readWhole(body: string): void {
    const response = readObject(body);
    if (!Array.isArray(response.output)) {
      throw new UpstreamFailure("garbled", "the response is not an object of the Responses API");
    }
    if (response.status !== undefined && response.status !== "completed" && response.status !== "incomplete") {
      throw new UpstreamFailure("failed", "the response was not completed");
    }
    this.#end(response);
  }

  #appendText(value: unknown): void {
    const text = asText(value) ?? "";
    if (text !== "") this.#isEmpty = false;
    this.#reply.append(text);
  }

  #appendReasoning(value: unknown): void {
    const text = asText(value) ?? "";
    if (text === "") return;
    this.#isEmpty = false;
    this.#hasReasoningText = true;
    this.#reply.appendReasoning({ text, signature: undefined, encrypted: undefined });
  }

  #readCall(event: JsonObject, item: JsonObject | undefined, isDone: boolean): void {
    if (item?.type !== "function_call") return;
    this.#isEmpty = false;
    this.#toolCalls.append(keyOf(event), {
      id: asText(item.call_id),
      name: asText(item.name),
      whole: isDone ? asText(item.arguments) : undefined,
    });
  }

  /** The encrypted form is known at the end of the item. */
  #endReasoning(item: JsonObject | undefined): void {
    if (item?.type !== "reasoning") return;
    if (!this.#hasReasoningText) this.#appendReasoning(textsOf(item.summary) || textsOf(item.content));
    const encrypted = asText(item.encrypted_content);
    if (encrypted) {
      this.#isEmpty = false;
      const opaque = joinItemId(asText(item.id), encrypted);
      this.#reply.appendReasoning({ text: "", signature: undefined, encrypted: opaque });
    }
    this.#hasReasoningText = false;
  }

  #end(response: JsonObject): void {
    // A server that does not stream, or only the end of the reply.
    if (this.#isEmpty && Array.isArray(response.output)) {
      for (const [i, item] of response.output.entries()) this.#readItem(i, asObject(item));
    }
    this.#toolCalls.end();
    this.#reply.setFinishReason(this.#isRefused ? "content_filter" : finishReasonOf(response));
    const usage = asObject(response.usage);
    if (usage) this.#reply.setUsage(usageReportedBy(usage));
    this.#reply.complete();
  }

  #readItem(index: number, item: JsonObject | undefined): void {
    this.#readCall({ output_index: index }, item, true);
    this.#endReasoning(item);
    if (item?.type !== "message" || !Array.isArray(item.content)) return;
    for (const value of item.content) {
      const part = asObject(value);
      if (part?.type === "refusal") this.#isRefused = true;
      this.#appendText(part?.type === "refusal" ? part.refusal : part?.text);
    }
  }
}

function keyOf({ output_index: index, item_id: id }: JsonObject): string {
  return `${asCount(index) ?? asText(id)}`;
}

function textsOf(parts: unknown): string {
  if (!Array.isArray(parts)) return "";
  const texts = parts.map((part) => asText(asObject(part)?.text) ?? "");
  return texts.filter((text) => text !== "").join("\n\n");
}

function finishReasonOf({ incomplete_details: details }: JsonObject): FinishReason {
  const reason = asObject(details)?.reason;
  if (reason === "content_filter") return "content_filter";
  return reason === "max_output_tokens" ? "length" : "stop";
}

/** Cached tokens and reasoning are part of the totals. */
function usageReportedBy(usage: JsonObject): Usage | undefined {
  const input = asObject(usage.input_tokens_details);
  return reportedUsage({
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    cachedInput: input?.cached_tokens,
    cacheWrite: input?.cache_write_tokens,
    imageTokens: input?.image_tokens,
    reasoning: asObject(usage.output_tokens_details)?.reasoning_tokens,
  });
}
