import { EmbeddingsService } from "../../gen/vx/openai/v1/embeddings_pb.js";
import { type Embedding, EmbedService } from "../../gen/vx/v1/embed_pb.js";
import { MAX_VALUES } from "../billing/check-request.ts";
import type { GenerationRequest } from "../billing/generation-request.ts";
import { base64OfVector } from "../domain/base64.ts";
import type { Format } from "../domain/prompt.ts";
import { inputTokensOf } from "../domain/usage.ts";
import { jsonOf, lazyValueOf } from "../rules/plain-values.ts";
import { EMBEDDINGS } from "./compatible-members.ts";
import { type ApiCall, defineService } from "./define-service.ts";
import { summaryOf } from "./generate/reply.ts";
import { recordedUser } from "./request-values.ts";
import { textsAt } from "./token-texts.ts";

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

export const embeddingsService = defineService(
  EmbeddingsService,
  {
    createEmbeddings: {
      prompt: async ({ decodeTokens }, request, call) => {
        const { model, dimensions, user = "" } = request;
        const texts = await textsAt(request.input && jsonOf(request.input), "input", decodeTokens);
        const asked = { format: "openai-chat", model, ...texts, dimensions, user: recordedUser(user) } as const;
        return embeddingRequestOf(asked, call);
      },
      respond: (reply, { encodingFormat }) => {
        const promptTokens = BigInt(inputTokensOf(reply.usage));
        const jsonOfVector = encodingFormat === "base64" ? base64OfVector : (vector: Float32Array) => [...vector];
        return {
          object: "list",
          data: (reply.vectors ?? []).map((vector, index) => ({
            object: "embedding",
            index,
            embedding: lazyValueOf(() => jsonOfVector(vector)),
          })),
          model: reply.model,
          usage: { promptTokens, totalTokens: promptTokens, costMicros: reply.costMicros },
          id: reply.id,
          balanceMicros: reply.balanceMicros,
        };
      },
    },
  },
  EMBEDDINGS,
);

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

/** Of one vector, if the request does not say. */
const USUAL_DIMENSIONS = 1_536;
/** As a float, and in the base64 of an upstream. */
const BYTES_PER_VALUE = 10;
/** In the base64 and the JSON of the stored answer, and in the statement that stores it. */
const STORED_BYTES_PER_VALUE = 16;

type EmbeddingRequest = {
  readonly format: Format;
  readonly model: string;
  readonly texts: readonly string[];
  /** The field of each text, if they are not `input[0]`, `input[1]` and so on. */
  readonly fields?: readonly string[];
  readonly dimensions: number | undefined;
  readonly user: string;
};

/** Each text is a message, so that it is counted and sent like any other input. Reserves the memory of the vectors. */
function embeddingRequestOf({ texts, dimensions, ...rest }: EmbeddingRequest, call: ApiCall): GenerationRequest {
  const bytesPerValue = BYTES_PER_VALUE + (call.idempotencyKey === undefined ? 0 : STORED_BYTES_PER_VALUE);
  call.reserveMemory(bytesPerValue * Math.min(texts.length * (dimensions ?? USUAL_DIMENSIONS), MAX_VALUES));
  return {
    ...rest,
    messages: texts.map((content) => ({ role: "user", content })),
    maxTokens: undefined,
    temperature: undefined,
    stop: [],
    options: { task: { kind: "embed", dimensions } },
    maxCostMicros: undefined,
  };
}
