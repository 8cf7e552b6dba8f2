import { vectorOfBase64 } from "../../domain/base64.ts";
import type { Prompt } from "../../domain/prompt.ts";
import type { Dialect, ResponseReader } from "../dialect.ts";
import { asCount, asObject, type JsonObject, readObject, reportedUsage } from "../http/json-value.ts";
import type { ReplyBuffer } from "../http/reply-buffer.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import { openaiHeaders } from "./body.ts";

const MAX_DIMENSIONS = 8_192;
/** Base64 of the largest number of values, and some space around it. */
const MAX_JSON_BYTES = 25_165_824;

export const openaiEmbeddingsDialect: Dialect = {
  path: (basePath) => `${basePath}/embeddings`,
  headers: openaiHeaders,
  body: (prompt, model) => ({
    model,
    input: prompt.messages.map(({ content }) => content),
    // A third of the size of numbers, and the format that OpenAI's clients request. Servers that ignore it send numbers.
    encoding_format: "base64",
    dimensions: dimensionsOf(prompt),
  }),
  createReader: (reply, prompt) => new EmbeddingsReader(reply, prompt.messages.length, dimensionsOf(prompt)),
  maxJsonBytes: MAX_JSON_BYTES,
};

function dimensionsOf({ options: { task } }: Prompt): number | undefined {
  return task?.kind === "embed" ? task.dimensions : undefined;
}

class EmbeddingsReader implements ResponseReader {
  readonly #reply: ReplyBuffer;
  readonly #count: number;
  #dimensions: number | undefined;

  constructor(reply: ReplyBuffer, count: number, dimensions: number | undefined) {
    this.#reply = reply;
    this.#count = count;
    this.#dimensions = dimensions;
  }

  readEvent(): void {
    throw garbled("is a stream");
  }

  readWhole(body: string): void {
    const { data, usage } = readObject(body);
    if (!Array.isArray(data) || data.length !== this.#count) throw garbled(`does not have ${this.#count} vectors`);
    const vectors = new Map<number, Float32Array>();
    for (const [position, value] of data.entries()) {
      const item: JsonObject = asObject(value) ?? {};
      // Servers that leave out the index send the vectors in order.
      const index = item.index === undefined ? position : asCount(item.index);
      if (index === undefined || index >= this.#count || vectors.has(index)) throw garbled("has wrong indexes");
      vectors.set(index, this.#vectorOf(item.embedding));
    }
    this.#reply.setVectors(Array.from({ length: this.#count }, (_, i) => vectors.get(i) ?? new Float32Array()));
    this.#reply.setUsage(reportedUsage({ inputTokens: asObject(usage)?.prompt_tokens, outputTokens: 0 }));
    this.#reply.complete();
  }

  #vectorOf(embedding: unknown): Float32Array {
    const vector = typeof embedding === "string" ? vectorOfBase64(embedding) : vectorOfNumbers(embedding);
    if (!vector || vector.length > MAX_DIMENSIONS) throw garbled("has an invalid vector");
    this.#dimensions ??= vector.length;
    if (vector.length !== this.#dimensions) {
      throw garbled(`has a vector of ${vector.length} instead of ${this.#dimensions} dimensions`);
    }
    return vector;
  }
}

function vectorOfNumbers(value: unknown): Float32Array | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_DIMENSIONS) return undefined;
  if (!value.every((one) => typeof one === "number")) return undefined;
  const vector = Float32Array.from(value);
  return vector.every(Number.isFinite) ? vector : undefined;
}

function garbled(problem: string): UpstreamFailure {
  return new UpstreamFailure("garbled", `the response to a request for embeddings ${problem}`);
}
