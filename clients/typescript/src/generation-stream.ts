import { create } from "@bufbuild/protobuf";
import { ServerError } from "./errors.ts";
import {
  type GenerateDelta,
  type GenerateDone,
  type GenerateResponse,
  GenerateResponseSchema,
  MessageSchema,
  type Reasoning,
  ReasoningSchema,
  type StreamGenerateResponse,
  type ToolCall,
  ToolCallSchema,
} from "./gen/vx/v1/generate_pb.ts";

/** The events of one call. Its first event was read, so that everything before it could be repeated. */
export type StartedStream = {
  readonly first: IteratorResult<StreamGenerateResponse>;
  readonly rest: AsyncIterator<StreamGenerateResponse>;
  readonly toError: (thrown: unknown) => Error;
  readonly abort: () => void;
};

/**
 * A streamed reply: iterate it for the deltas, then call `finalResponse` for the whole reply with its usage and cost.
 * The call starts at once, and leaving the loop ends it.
 */
export class GenerationStream implements AsyncIterable<GenerateDelta> {
  readonly #started: Promise<StartedStream>;
  readonly #builder = new ReplyBuilder();
  #isRead = false;
  #isComplete = false;

  constructor(started: Promise<StartedStream>) {
    this.#started = started;
    // The error is thrown to the reader of the stream, who may come later.
    started.catch(() => undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<GenerateDelta, void, undefined> {
    if (this.#isRead) throw new TypeError("The stream was already read.");
    this.#isRead = true;
    const { first, rest, toError, abort } = await this.#started;
    try {
      for (let next = first; !next.done; next = await rest.next()) {
        const { event } = next.value;
        if (event.case === "done") this.#builder.end(event.value);
        if (event.case !== "delta") continue;
        this.#builder.append(event.value);
        yield event.value;
      }
      this.#isComplete = true;
    } catch (thrown) {
      throw toError(thrown);
    } finally {
      if (!this.#isComplete) abort();
    }
  }

  /** The texts of the reply. */
  async *texts(): AsyncGenerator<string, void, undefined> {
    for await (const { content } of this) if (content !== "") yield content;
  }

  /** The whole reply. Reads the rest of a stream that was not iterated. */
  async finalResponse(): Promise<GenerateResponse> {
    if (!this.#isRead) for await (const _ of this);
    if (!this.#isComplete) throw new TypeError("The stream was not read to its end.");
    return this.#builder.response();
  }

  /** The message received so far, even after an error. */
  get partialMessage(): GenerateResponse["message"] {
    return this.#builder.message();
  }
}

/** Puts deltas together, as the server does for a reply that is not streamed. */
class ReplyBuilder {
  #content = "";
  #done: GenerateDone | undefined;
  readonly #toolCalls: ToolCall[] = [];
  readonly #reasoning: Reasoning[] = [];
  #isReasoningOpen = false;

  append({ content, reasoning, toolCall }: GenerateDelta): void {
    this.#content += content;
    if (reasoning) this.#appendReasoning(reasoning);
    if (!toolCall) return;
    if (toolCall.index < 0 || toolCall.index > this.#toolCalls.length) {
      throw new ServerError(`The response has no tool call before ${toolCall.index}.`, { code: "internal" });
    }
    this.#toolCalls[toolCall.index] ??= create(ToolCallSchema);
    const call = this.#toolCalls[toolCall.index] as ToolCall;
    if (toolCall.id !== "") call.id = toolCall.id;
    if (toolCall.name !== "") call.name = toolCall.name;
    call.arguments += toolCall.arguments;
  }

  /** A signature or an encrypted text ends a block. */
  #appendReasoning({ text, signature, encrypted }: Reasoning): void {
    if (!this.#isReasoningOpen) this.#reasoning.push(create(ReasoningSchema));
    const block = this.#reasoning.at(-1) as Reasoning;
    block.text += text;
    block.signature += signature;
    block.encrypted += encrypted;
    this.#isReasoningOpen = signature === "" && encrypted === "";
  }

  end(done: GenerateDone): void {
    this.#done = done;
  }

  message() {
    return create(MessageSchema, {
      role: "assistant",
      content: this.#content,
      toolCalls: this.#toolCalls,
      reasoning: this.#reasoning,
    });
  }

  response(): GenerateResponse {
    const { id = "", model = "", finishReason = "", usage, balanceMicros = 0n, maxTokens } = this.#done ?? {};
    return create(GenerateResponseSchema, {
      id,
      model,
      finishReason,
      balanceMicros,
      message: this.message(),
      ...(usage && { usage }),
      ...(maxTokens !== undefined && { maxTokens }),
    });
  }
}
