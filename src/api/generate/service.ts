import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type GenerateResponseSchema,
  GenerateService,
  type QuoteGenerateResponseSchema,
  type StreamGenerateRequest,
  StreamGenerateRequestSchema,
  type StreamGenerateResponseSchema,
} from "../../../gen/vx/v1/generate_pb.js";
import type { Piece } from "../../billing/generation-request.ts";
import type { Meter } from "../../billing/meter.ts";
import { formatMicros } from "../../domain/money.ts";
import { type ApiCall, defineService } from "../define-service.ts";
import { deltaOf, messageOf, summaryOf } from "./reply.ts";
import { generationRequestOf } from "./request.ts";

export async function generate(
  meter: Meter,
  request: GenerateRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof GenerateResponseSchema>> {
  const caller = call.caller(GenerateRequestSchema, request);
  const reply = await meter.complete(caller, generationRequestOf(request));
  return { ...summaryOf(reply), message: messageOf(reply.output) };
}

type StreamMessage = MessageInitShape<typeof StreamGenerateResponseSchema>;

export function streamGenerate(
  meter: Meter,
  request: StreamGenerateRequest,
  call: ApiCall,
): AsyncIterable<StreamMessage> {
  const open = async () =>
    meter.stream(call.caller(StreamGenerateRequestSchema, request), generationRequestOf(request));
  return new MappedStream(open, messageOfPiece);
}

function messageOfPiece(piece: Piece): StreamMessage {
  return piece.kind === "reply"
    ? { event: { case: "done", value: summaryOf(piece.reply) } }
    : { event: { case: "delta", value: deltaOf(piece.delta) } };
}

export const generateService = defineService(GenerateService, ({ meter }) => ({
  generate: (request, call) => generate(meter, request, call),
  streamGenerate: (request, call) => streamGenerate(meter, request, call),
  quoteGenerate: (request, call) => quoteGenerate(meter, request, call),
}));

async function quoteGenerate(
  meter: Meter,
  request: GenerateRequest,
  { key, signal }: ApiCall,
): Promise<MessageInitShape<typeof QuoteGenerateResponseSchema>> {
  const generationRequest = generationRequestOf(request);
  const quote = await meter.quote(generationRequest, { key, signal });
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
}

type Result<Value> = IteratorResult<Value, undefined>;

const END = { done: true, value: undefined } as const;

/**
 * A stream that the first read opens, with each of its values mapped. Not an async generator: for each value, that
 * creates three promises more, and saves its variables in an object that other streams have displaced from the cache.
 */
export class MappedStream<From, To> implements AsyncIterableIterator<To, undefined> {
  readonly #open: () => Promise<AsyncIterator<From, undefined>>;
  readonly #map: (value: From) => To;
  #opening: Promise<AsyncIterator<From, undefined>> | undefined;
  #source: AsyncIterator<From, undefined> | undefined;
  #isStopped = false;

  constructor(open: () => Promise<AsyncIterator<From, undefined>>, map: (value: From) => To) {
    this.#open = open;
    this.#map = map;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result<To>> {
    return this.#source && !this.#isStopped ? this.#source.next().then(this.#onResult) : this.#readFirst();
  }

  /** Called by a reader that stops before the end. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isStopped = true;
    const source = await this.#opening?.catch(() => undefined);
    await source?.return?.();
    return END;
  }

  async #readFirst(): Promise<Result<To>> {
    if (this.#isStopped) return END;
    this.#opening ??= this.#open();
    this.#source = await this.#opening;
    return await this.next();
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
