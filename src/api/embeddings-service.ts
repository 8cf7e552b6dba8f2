import type { Value } from "@bufbuild/protobuf/wkt";
import { EmbeddingsService } from "../../gen/vx/openai/v1/embeddings_pb.js";
import { EmbedService } from "../../gen/vx/v1/embed_pb.js";
import type { GenerationRequest } from "../billing/generation-request.ts";
import { base64OfVector } from "../domain/base64.ts";
import { nextTurn, TurnMeter } from "../domain/next-turn.ts";
import type { Format } from "../domain/prompt.ts";
import { inputTokensOf } from "../domain/usage.ts";
import { jsonOf, valueOfJson, valueOfJsonText } from "../rules/plain-values.ts";
import { defineService } from "./define-service.ts";
import { summaryOf } from "./generate/reply.ts";
import { recordedUser } from "./request-values.ts";
import { textsAt } from "./token-texts.ts";

/** Converting this many values takes a few milliseconds. */
const VALUES_PER_TURN = 16_384;

/** Converts vectors in turns of the event loop. */
async function convert<Result>(
  vectors: readonly Float32Array[] = [],
  resultOf: (vector: Float32Array, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  const meter = new TurnMeter(VALUES_PER_TURN);
  for (const [index, vector] of vectors.entries()) {
    results.push(resultOf(vector, index));
    if (meter.isDue(vector.length)) await nextTurn();
  }
  return results;
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
  {
    createEmbeddings: async ({ meter, decodeTokens }, request, call) => {
      const { model, dimensions, encodingFormat, user = "" } = request;
      const texts = await textsAt(request.input && jsonOf(request.input), "input", decodeTokens);
      const asked = embeddingRequestOf({
        format: "openai-chat",
        model,
        ...texts,
        dimensions,
        user: recordedUser(user),
      });
      const reply = await meter.complete(call.caller(request), asked);
      const promptTokens = BigInt(inputTokensOf(reply.usage));
      const write = encodingFormat === "base64" ? inBase64 : inNumbers;
      return {
        object: "list",
        data: await convert(reply.vectors, (vector, index) => ({
          object: "embedding",
          index,
          embedding: write(vector),
        })),
        model: reply.model,
        usage: { promptTokens, totalTokens: promptTokens, costMicros: reply.costMicros },
        id: reply.id,
        balanceMicros: reply.balanceMicros,
      };
    },
  },
  "ignore",
);

export const embedService = defineService(EmbedService, {
  embed: async ({ meter }, request, call) => {
    const { model, input: texts, dimensions } = request;
    const asked = embeddingRequestOf({ format: "native", model, texts, dimensions, user: "" });
    const reply = await meter.complete(call.caller(request), asked);
    const { id, usage, balanceMicros } = summaryOf(reply);
    const embeddings = await convert(reply.vectors, (vector, index) => ({ index, values: [...vector] }));
    return { id, model: reply.model, embeddings, usage, balanceMicros };
  },
});

type Embedding = {
  readonly format: Format;
  readonly model: string;
  readonly texts: readonly string[];
  /** The field of each text, if they are not `input[0]`, `input[1]` and so on. */
  readonly fields?: readonly string[];
  readonly dimensions: number | undefined;
  readonly user: string;
};

/** Each text is a message, so that it is counted and sent like any other input. */
function embeddingRequestOf({ texts, dimensions, ...rest }: Embedding): GenerationRequest {
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
