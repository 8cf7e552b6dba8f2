import { EmbeddingsService } from "../../gen/vx/openai/v1/embeddings_pb.js";
import { defineService } from "../api/define-service.ts";
import { base64OfVector } from "../domain/base64.ts";
import { inputTokensOf } from "../domain/price.ts";
import { embeddingRequestOf } from "../generations/embedding-request.ts";
import { EMBEDDINGS } from "../rules/compatible-members.ts";
import { recordedUser } from "../rules/request-values.ts";
import { jsonOf, lazyValueOf } from "../rules/untyped-values.ts";
import { textsAt } from "./token-texts.ts";

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
