import { formatMicros } from "../../../domain/money.ts";
import type { ExampleModel } from "../../../models/example-model.ts";
import type { OperationExample } from "./operation-example.ts";

const ID = "gen_01kam4xy3xfk89k8z8sr4cvyj7";
const INPUT_TOKENS = 8;
const COST_MICROS = 1n;
const BALANCE_MICROS = 9_999_999;
const TEXTS = ["What is a ledger?", "What is a hold?"];
const VECTORS = [
  [0.5, -0.5, 0.5, 0.5],
  [0.5, 0.5, -0.5, 0.5],
];

/** The examples of embeddings. */
export function embeddingExamples(example: ExampleModel): Readonly<Record<string, OperationExample>> {
  const { missing } = example;
  const model = example.model.id;
  return {
    Embed: {
      missing,
      body: { model, input: TEXTS, dimensions: 4 },
      response: {
        id: ID,
        model,
        embeddings: VECTORS.map((values, index) => ({ index, values })),
        usage: {
          input_tokens: INPUT_TOKENS,
          output_tokens: 0,
          cost_micros: Number(COST_MICROS),
          cost: formatMicros(COST_MICROS),
          cached_input_tokens: 0,
          cache_write_tokens: 0,
          reasoning_tokens: 0,
          image_tokens: 0,
        },
        balance_micros: BALANCE_MICROS,
      },
    },
    CreateEmbeddings: {
      missing,
      body: { model, input: TEXTS, dimensions: 4 },
      response: {
        object: "list",
        data: VECTORS.map((embedding, index) => ({ object: "embedding", index, embedding })),
        model,
        usage: { prompt_tokens: INPUT_TOKENS, total_tokens: INPUT_TOKENS, cost_micros: Number(COST_MICROS) },
        id: ID,
        balance_micros: BALANCE_MICROS,
      },
    },
  };
}
