import type { FinishReason } from "../../domain/output.ts";
import type { Usage } from "../../domain/price.ts";
import type { ResponseReader } from "../dialect.ts";
import { asCount, asObject, asText, firstObject, type JsonObject, readObject, reportedUsage } from "../http/json-value.ts";
import type { ReplyBuffer } from "../http/reply-buffer.ts";
import { type ToolCallPart, ToolCalls } from "../http/tool-calls.ts";
import { UpstreamFailure } from "../upstream-failure.ts";

/** The names that servers use for the text of the reasoning. Some send it under two of them. */
const REASONING_NAMES = ["reasoning_content", "reasoning", "thinking"] as const;

export class OpenaiReader implements ResponseReader {
  readonly #reply: ReplyBuffer;
  #toolCalls: ToolCalls | undefined;
  /** The calls that the server's numbers refer to. */
  readonly #keys = new Map<number, string>();
  #lastKey: string | undefined;
  #newKeys = 0;
  #isRefused = false;

  constructor(reply: ReplyBuffer) {
    this.#reply = reply;
  }

  readEvent(data: string): void {
    if (data === "[DONE]") {
      this.#complete();
      return;
    }
    const chunk = readObject(data);
    this.#read(chunk, asObject(firstObject(chunk.choices)?.delta));
  }

  readWhole(body: string): void {
    const completion = readObject(body);
    const message = asObject(firstObject(completion.choices)?.message);
    if (!message) throw new UpstreamFailure("garbled", "the response is not a chat completion");
    this.#read(completion, message);
    this.#complete();
  }

  #complete(): void {
    this.#toolCalls?.end();
    this.#reply.complete();
  }

  #read(value: JsonObject, message: JsonObject | undefined): void {
    if (message) this.#readMessage(message);
    const reason = asText(firstObject(value.choices)?.finish_reason);
    if (reason !== undefined) {
      // Some servers end the response here.
      this.#toolCalls?.end();
      this.#reply.setFinishReason(
        this.#isRefused ? "content_filter" : finishReasonOf(reason),
        stopSequenceOf(firstObject(value.choices)),
      );
    }
    // Some servers report usage in every chunk: the last valid report counts.
    const usage = asObject(value.usage);
    if (usage) this.#reply.setUsage(usageReportedBy(usage));
  }

  #readMessage(message: JsonObject): void {
    const name = REASONING_NAMES.find((candidate) => asText(message[candidate]));
    if (name !== undefined)
      this.#reply.appendReasoning({ text: asText(message[name]) ?? "", signature: undefined, encrypted: undefined });
    this.#readContent(message.content);
    this.#readRefusal(asText(message.refusal));
    if (Array.isArray(message.tool_calls)) for (const call of message.tool_calls) this.#readCall(call);
  }

  /** A text; on some servers, a list of parts. */
  #readContent(content: unknown): void {
    if (!Array.isArray(content)) this.#reply.append(asText(content) ?? "");
    else for (const part of content) this.#reply.append(asText(asObject(part)?.text) ?? "");
  }

  /** The text that a model replies with when it refuses the request. */
  #readRefusal(text: string | undefined): void {
    if (!text) return;
    this.#isRefused = true;
    this.#reply.append(text);
  }

  #readCall(value: unknown): void {
    const call = asObject(value);
    const fields = asObject(call?.function);
    if (!call || !fields) return;
    this.#toolCalls ??= new ToolCalls(this.#reply);
    const part = { id: asText(call.id), name: asText(fields.name), arguments: argumentsOf(fields.arguments) };
    this.#toolCalls.append(this.#keyOf(call.index, part), part);
  }

  /**
   * The number of the call, unless the server gives every call the same number: then a new id with a name begins a
   * call. Servers without numbers send ids, or each call in one part.
   */
  #keyOf(index: unknown, { id, name }: ToolCallPart): string {
    const number = asCount(index);
    if (number === undefined && id) {
      this.#lastKey = `id ${id}`;
      return this.#lastKey;
    }
    const current = number === undefined ? this.#lastKey : this.#keys.get(number);
    const knownId = current === undefined ? undefined : this.#toolCalls?.idOf(current);
    const isOther = number === undefined ? Boolean(name) : Boolean(id && name && knownId && knownId !== id);
    const key = current === undefined || isOther ? `new ${this.#newKeys++}` : current;
    if (number !== undefined) this.#keys.set(number, key);
    this.#lastKey = key;
    return key;
  }
}

/** vLLM and SGLang report it, or the number of a stop token. */
function stopSequenceOf(choice: JsonObject | undefined): string | undefined {
  return asText(choice?.stop_reason) ?? asText(choice?.matched_stop);
}

/** JSON text; some servers send the object itself. */
function argumentsOf(value: unknown): string | undefined {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : asText(value);
}

/** Cached tokens and reasoning are part of the totals. */
export function usageReportedBy(usage: JsonObject): Usage | undefined {
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

/** Unknown reasons count as "stop". */
export function finishReasonOf(reason: string): FinishReason {
  switch (reason) {
    case "length":
    case "content_filter":
    case "tool_calls":
      return reason;
    case "function_call":
      return "tool_calls";
    default:
      return "stop";
  }
}
