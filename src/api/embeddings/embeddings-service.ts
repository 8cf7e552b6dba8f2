import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import {
  type CreateEmbeddingsRequest,
  CreateEmbeddingsRequestSchema,
  type CreateEmbeddingsResponseSchema,
  EmbeddingsService,
} from "../../../gen/vx/openai/v1/embeddings_pb.js";
import type { Meter } from "../../billing/meter.ts";
import { nextTurn } from "../../domain/next-turn.ts";
import { inputTokensOf } from "../../domain/usage.ts";
import { base64OfVector } from "../../domain/vector.ts";
import { jsonOf, valueOfJson, valueOfJsonText } from "../../rules/plain-values.ts";
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
  const reply = await meter.complete(call.caller(CreateEmbeddingsRequestSchema, request), asked);
  const promptTokens = BigInt(inputTokensOf(reply.usage));
  return {
    object: "list",
    data: await embeddingsOf(reply.vectors ?? [], encodingFormat === "base64" ? inBase64 : inNumbers),
    model: reply.model,
    usage: { promptTokens, totalTokens: promptTokens, costMicros: reply.costMicros },
    id: reply.id,
    balanceMicros: reply.balanceMicros,
  };
}

/** Writing this many values takes a few milliseconds. */
const VALUES_PER_TURN = 16_384;

async function embeddingsOf(vectors: readonly Float32Array[], write: (vector: Float32Array) => Value) {
  const data: { object: string; index: number; embedding: Value }[] = [];
  let values = 0;
  for (const [index, vector] of vectors.entries()) {
    data.push({ object: "embedding", index, embedding: write(vector) });
    values += vector.length;
    if (values < VALUES_PER_TURN) continue;
    values = 0;
    await nextTurn();
  }
  return data;
}

function inBase64(vector: Float32Array): Value {
  return valueOfJson(base64OfVector(vector));
}

function inNumbers(vector: Float32Array): Value {
  const numbers = [...vector];
  return valueOfJsonText(numbers, JSON.stringify(numbers));
}

/** Unknown fields are ignored: OpenAI's clients send fields that this server does not know. */
export const embeddingsService = defineService(
  EmbeddingsService,
  ({ meter, deps }) => ({
    createEmbeddings: (request, call) => createEmbeddings(meter, deps.decodeTokens, request, call),
  }),
  "ignore",
);
