import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Embedding, EmbedService } from "../../gen/vx/v1/embed_pb.js";
import {
  type ContentPart as ContentPartMessage,
  type GenerateDeltaSchema,
  type GenerateRequest,
  GenerateService,
  type Image as ImageMessage,
  type Message,
  type MessageSchema,
  type Reasoning as ReasoningMessage,
  type ReasoningSchema,
  type ResponseFormat as ResponseFormatMessage,
  type StreamGenerateRequest,
  type StreamGenerateResponseSchema,
  type Tool as ToolMessage,
  type UsageSchema,
} from "../../gen/vx/v1/generate_pb.js";
import { defineService } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { imageOfBytes, imageOfUrl } from "../domain/image.ts";
import { formatMicros } from "../domain/money.ts";
import type { Delta, Output } from "../domain/output.ts";
import { inputTokensOf, outputTokensOf } from "../domain/price.ts";
import {
  type ContentPart,
  type Image,
  type ImageDetail,
  type PromptMessage,
  type PromptOptions,
  presentOptions,
  type Reasoning,
  type ReasoningEffort,
  type ResponseFormat,
  type Tool,
  type ToolChoice,
} from "../domain/prompt.ts";
import { embeddingRequestOf } from "./embedding-request.ts";
import type { GenerationRequest, Piece, Reply } from "./generation-request.ts";

export const generateService = defineService(GenerateService, {
  generate: {
    prompt: (_, request) => generationRequestOf(request),
    respond: (reply) => ({ ...summaryOf(reply), message: messageOf(reply.output) }),
  },
  streamGenerate: {
    prompt: (_, request) => generationRequestOf(request),
    respond: (pieces) => new MappedStream(pieces, messageOfPiece),
  },
  quoteGenerate: async ({ meter }, request, { key, signal }) => {
    const quote = await meter.quote(generationRequestOf(request), { key, signal });
    return {
      model: quote.model,
      inputTokens: BigInt(quote.inputTokens),
      maxTokens: quote.maxTokens,
      holdMicros: quote.holdMicros,
      hold: formatMicros(quote.holdMicros),
      fits: quote.refusal === undefined,
      refusal: quote.refusal ?? "",
      limitId: quote.limitId ?? "",
    };
  },
});

function messageOfPiece(piece: Piece): MessageInitShape<typeof StreamGenerateResponseSchema> {
  return piece.kind === "reply"
    ? { event: { case: "done", value: summaryOf(piece.reply) } }
    : { event: { case: "delta", value: deltaOf(piece.delta) } };
}

type AnyRequest = GenerateRequest | StreamGenerateRequest;

export function generationRequestOf(request: AnyRequest): GenerationRequest {
  return {
    format: "native",
    model: request.model,
    messages: request.messages.map(promptMessageOf),
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stop: request.stop,
    options: optionsOf(request),
    user: request.user,
    maxCostMicros: request.maxCostMicros,
  };
}

function optionsOf(request: AnyRequest): PromptOptions {
  const { topP, topK, seed, presencePenalty, frequencyPenalty, parallelToolCalls } = request;
  return presentOptions({
    topP,
    topK,
    seed: seed === undefined ? undefined : Number(seed),
    presencePenalty,
    frequencyPenalty,
    tools: request.tools.length === 0 ? undefined : request.tools.map(toolOf),
    toolChoice: request.toolChoice === undefined ? undefined : toolChoiceOf(request.toolChoice),
    parallelToolCalls,
    responseFormat: request.responseFormat && responseFormatOf(request.responseFormat),
    // The rules of the .proto limit the values.
    reasoningEffort: request.reasoningEffort as ReasoningEffort | undefined,
  });
}

function toolOf({ name, description, parameters, strict }: ToolMessage): Tool {
  return { name, description: description === "" ? undefined : description, parameters, strict };
}

function toolChoiceOf(text: string): ToolChoice {
  if (text === "auto" || text === "none" || text === "required") return { kind: text };
  return { kind: "tool", name: text };
}

function responseFormatOf(format: ResponseFormatMessage): ResponseFormat | undefined {
  const { type, name, schema, strict } = format;
  if (type === "json_schema") {
    if (!schema) throw DomainError.ofField("response_format.schema", 'is required with the type "json_schema"');
    return { kind: "json_schema", name: name === "" ? "response" : name, schema, strict };
  }
  if (name !== "" || schema || strict !== undefined) {
    throw DomainError.ofField("response_format", 'must have no name, schema or strict, except with the type "json_schema"');
  }
  return type === "json" ? { kind: "json" } : undefined;
}

/**
 * Copies the fields, because a protobuf message has members that upstreams do not accept, such as $typeName. The
 * rules of the .proto limit roles and details.
 */
function promptMessageOf(message: Message, i: number): PromptMessage {
  const role = message.role as PromptMessage["role"];
  if (isTextAlone(message)) return { role, content: message.content ?? "" };
  return { role, ...membersOf(message, `messages[${i}]`) };
}

function isTextAlone({ content, parts, toolCallId, toolCalls, reasoning }: Message): boolean {
  return content !== undefined && parts.length === 0 && toolCallId === "" && toolCalls.length === 0 && reasoning.length === 0;
}

function membersOf(message: Message, field: string): Omit<PromptMessage, "role"> {
  const { content, parts, toolCallId, toolCalls, reasoning } = message;
  if (content !== undefined && parts.length > 0) {
    throw DomainError.ofField(`${field}.parts`, "must not be set together with content");
  }
  if (content === undefined && parts.length === 0 && toolCalls.length === 0 && toolCallId === "") {
    throw DomainError.ofField(`${field}.content`, "is required without parts, tool_calls or tool_call_id");
  }
  return {
    content: parts.length > 0 ? parts.map((part, i) => partOf(part, `${field}.parts[${i}]`)) : (content ?? ""),
    ...(toolCallId === "" ? {} : { toolCallId }),
    ...(toolCalls.length === 0
      ? {}
      : { toolCalls: toolCalls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text })) }),
    ...(reasoning.length === 0 ? {} : { reasoning: reasoning.map(reasoningOf) }),
  };
}

function partOf({ text, image }: ContentPartMessage, field: string): ContentPart {
  if (image && text === undefined) {
    const detail = image.detail as ImageDetail | undefined;
    return { kind: "image", image: imageOf(image, `${field}.image`), detail };
  }
  if (image || text === undefined) throw DomainError.ofField(field, "must have either text or image");
  return { kind: "text", text };
}

function imageOf({ url, data, mediaType }: ImageMessage, field: string): Image {
  if (data && url === undefined) return imageOfBytes(mediaType ?? "", data, `${field}.data`);
  if (data || url === undefined) throw DomainError.ofField(field, "must have either url or data");
  if (mediaType !== undefined) throw DomainError.ofField(`${field}.media_type`, "requires data");
  return imageOfUrl(url, `${field}.url`);
}

function reasoningOf({ text, signature, encrypted }: ReasoningMessage): Reasoning {
  return {
    text,
    signature: signature === "" ? undefined : signature,
    encrypted: encrypted === "" ? undefined : encrypted,
  };
}

type Result<Value> = IteratorResult<Value, undefined>;

/**
 * A stream whose values are mapped. Not an async generator: for each value, that creates three promises more, and saves its variables in
 * an object that other streams have displaced from the cache.
 */
export class MappedStream<From, To> implements AsyncIterableIterator<To, undefined> {
  readonly #source: AsyncIterator<From, undefined>;
  readonly #map: (value: From) => To;

  constructor(source: AsyncIterator<From, undefined>, map: (value: From) => To) {
    this.#source = source;
    this.#map = map;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result<To>> {
    return this.#source.next().then(this.#onResult);
  }

  /** Called by a reader that stops before the end. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    await this.#source.return?.();
    return { done: true, value: undefined };
  }

  readonly #onResult = (result: Result<From>): Result<To> | Promise<Result<To>> => {
    if (result.done === true) return result;
    try {
      return { done: false, value: this.#map(result.value) };
    } catch (error) {
      return this.#fail(error);
    }
  };

  /** The reader of a stream that failed does not close it. */
  async #fail(error: unknown): Promise<never> {
    await this.return();
    throw error;
  }
}

function summaryOf(reply: Reply) {
  return {
    id: reply.id,
    model: reply.model,
    finishReason: reply.finishReason,
    usage: usageOf(reply),
    balanceMicros: reply.balanceMicros,
    maxTokens: reply.loweredMaxTokens,
  };
}

/** The message can be sent back unchanged, as a part of the conversation. */
function messageOf({ text, toolCalls, reasoning }: Output): MessageInitShape<typeof MessageSchema> {
  return {
    role: "assistant",
    content: text,
    toolCalls: [...toolCalls],
    reasoning: reasoning.map(viewReasoning),
  };
}

function deltaOf(delta: Delta): MessageInitShape<typeof GenerateDeltaSchema> {
  switch (delta.kind) {
    case "text":
      return { content: delta.text };
    case "reasoning":
      return { reasoning: viewReasoning(delta.reasoning) };
    case "tool_call":
      return { toolCall: delta.toolCall };
  }
}

function viewReasoning({ text, signature = "", encrypted = "" }: Reasoning): MessageInitShape<typeof ReasoningSchema> {
  return { text, signature, encrypted };
}

/** Public counts are inclusive: the details are parts of the input and output tokens. */
function usageOf({ usage, costMicros }: Reply): MessageInitShape<typeof UsageSchema> {
  return {
    inputTokens: BigInt(inputTokensOf(usage)),
    outputTokens: BigInt(outputTokensOf(usage)),
    costMicros,
    cost: formatMicros(costMicros),
    cachedInputTokens: BigInt(usage.cachedInput),
    cacheWriteTokens: BigInt(usage.cacheWrite),
    reasoningTokens: BigInt(usage.reasoning),
    imageTokens: BigInt(usage.imageTokens),
  };
}

/** The numbers are created when they are written: a list of them takes at least twice the memory of the vector. */
class LazyEmbedding implements Embedding {
  readonly $typeName = "vx.v1.Embedding";
  readonly index: number;
  readonly #vector: Float32Array;

  constructor(vector: Float32Array, index: number) {
    this.index = index;
    this.#vector = vector;
  }

  get values(): number[] {
    return [...this.#vector];
  }
}

export const embedService = defineService(EmbedService, {
  embed: {
    prompt: (_, { model, input: texts, dimensions }, call) =>
      embeddingRequestOf({ format: "native", model, texts, dimensions, user: "" }, call),
    respond: (reply) => {
      const { id, usage, balanceMicros } = summaryOf(reply);
      const embeddings = (reply.vectors ?? []).map((vector, index) => new LazyEmbedding(vector, index));
      return { id, model: reply.model, embeddings, usage, balanceMicros };
    },
  },
});
