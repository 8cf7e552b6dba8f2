import type { MessageInitShape } from "@bufbuild/protobuf";
import { GenerateService, type StreamGenerateResponseSchema } from "../../../gen/vx/v1/generate_pb.js";
import type { Piece } from "../../billing/generation-request.ts";
import { formatMicros } from "../../domain/money.ts";
import { defineService } from "../define-service.ts";
import { deltaOf, messageOf, summaryOf } from "./reply.ts";
import { generationRequestOf } from "./request.ts";

export const generateService = defineService(GenerateService, {
  generate: async ({ meter }, request, call) => {
    const caller = call.caller(request);
    const reply = await meter.complete(caller, generationRequestOf(request));
    return { ...summaryOf(reply), message: messageOf(reply.output) };
  },
  streamGenerate: ({ meter }, request, call) => {
    const open = async () => meter.stream(call.caller(request), generationRequestOf(request));
    return new MappedStream(open, messageOfPiece);
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
