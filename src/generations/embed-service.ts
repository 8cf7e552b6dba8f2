import { type Embedding, EmbedService } from "../../gen/vx/v1/embed_pb.js";
import { defineService } from "../api/define-service.ts";
import { embeddingRequestOf } from "./embedding-request.ts";
import { summaryOf } from "./reply.ts";

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
