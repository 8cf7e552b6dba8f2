import { type Prompt, textsOfMessage } from "../../domain/prompt.ts";
import type { Dialect, ResponseReader } from "../dialect.ts";
import { asObject, asText, firstObject, type JsonObject, readObject } from "../http/json-value.ts";
import type { ReplyBuffer } from "../http/reply-buffer.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import { openaiHeaders } from "./body.ts";
import { finishReasonOf, usageReportedBy } from "./reader.ts";

/** The continuation of a text, which has no messages: base models and models that fill in code. */
export const openaiCompletionsDialect: Dialect = {
  path: (basePath) => `${basePath}/completions`,
  headers: openaiHeaders,
  body: completionBody,
  createReader: (reply) => new CompletionsReader(reply),
};

function completionBody({ messages, maxTokens, temperature, stop, options }: Prompt, model: string): object {
  return {
    model,
    prompt: messages.flatMap(textsOfMessage).join(""),
    suffix: options.suffix,
    max_tokens: maxTokens,
    temperature,
    top_p: options.topP,
    seed: options.seed,
    presence_penalty: options.presencePenalty,
    frequency_penalty: options.frequencyPenalty,
    stop: stop.length === 0 ? undefined : stop,
    // Always stream, so that the output is known when a caller disconnects.
    stream: true,
    stream_options: { include_usage: true },
  };
}

class CompletionsReader implements ResponseReader {
  readonly #reply: ReplyBuffer;

  constructor(reply: ReplyBuffer) {
    this.#reply = reply;
  }

  readEvent(data: string): void {
    if (data === "[DONE]") this.#reply.complete();
    else this.#read(readObject(data));
  }

  readWhole(body: string): void {
    const completion = readObject(body);
    if (!firstObject(completion.choices)) {
      throw new UpstreamFailure("garbled", "the response is not a completion");
    }
    this.#read(completion);
    this.#reply.complete();
  }

  #read(value: JsonObject): void {
    const choice = firstObject(value.choices);
    this.#reply.append(asText(choice?.text) ?? "");
    const reason = asText(choice?.finish_reason);
    if (reason !== undefined) this.#reply.setFinishReason(finishReasonOf(reason));
    const usage = asObject(value.usage);
    if (usage) this.#reply.setUsage(usageReportedBy(usage));
  }
}
