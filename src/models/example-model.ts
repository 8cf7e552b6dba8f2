import type { Model } from "../domain/model.ts";

/** The model in examples: the cheapest one, because people run the examples. */
export function exampleModel(models: readonly Model[]): Model | undefined {
  const price = ({ prices }: Model) => prices.input + prices.output;
  return models
    .filter(({ capabilities }) => !capabilities.includes("embeddings"))
    .toSorted((one, other) => Number(price(one) - price(other)))[0];
}

/** The id of the model in examples of embeddings; a placeholder if no model creates them. */
export function exampleEmbeddingModel(models: readonly Model[]): string {
  return models.find(({ capabilities }) => capabilities.includes("embeddings"))?.id ?? "EMBEDDING_MODEL";
}
