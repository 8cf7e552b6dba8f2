import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type CreateEmbeddingsRequest,
  type CreateEmbeddingsResponseSchema,
  EmbeddingsService,
} from "../../../gen/vx/openai/v1/embeddings_pb.js";
import type { Meter } from "../../billing/meter.ts";
import { inputTokensOf } from "../../domain/usage.ts";
import { base64OfVector } from "../../domain/vector.ts";
import { jsonOf, valueOfJson } from "../../rules/plain-values.ts";
import type { ApiCall } from "../api-call.ts";
import { defineService } from "../define-service.ts";
import { recordedUser } from "../recorded-user.ts";
import { type DecodeTokens, textsAt } from "../token-texts.ts";
import { embeddingRequestOf } from "./embedding-request.ts";

export async function createEmbeddings(
  meter: Meter,
  decode: DecodeTokens,
  request: CreateEmbeddingsRequest,
  call: ApiCall,
): Promise<MessageInitShape<typeof CreateEmbeddingsResponseSchema>> {
  const { model, dimensions, encodingFormat, user = "" } = request;
  const texts = await textsAt(request.input && jsonOf(request.input), "input", decode);
  const asked = embeddingRequestOf({
    format: "openai-chat",
    model,
    ...texts,
    dimensions,
    user: recordedUser(user),
  });
  const reply = await meter.complete(call.caller(), asked);
  const promptTokens = BigInt(inputTokensOf(reply.usage));
  return {
    object: "list",
    data: (reply.vectors ?? []).map((vector, index) => ({
      object: "embedding",
      index,
      embedding: valueOfJson(encodingFormat === "base64" ? base64OfVector(vector) : [...vector]),
    })),
    model: reply.model,
    usage: { promptTokens, totalTokens: promptTokens, costMicros: reply.costMicros },
    id: reply.id,
    balanceMicros: reply.balanceMicros,
  };
}

/** Unknown fields are ignored: OpenAI's clients send fields that this server does not know. */
export const embeddingsService = defineService(
  EmbeddingsService,
  ({ meter, deps }) => ({
    createEmbeddings: (request, call) => createEmbeddings(meter, deps.decodeTokens, request, call),
  }),
  "ignore",
);
