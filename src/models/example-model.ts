import type { Model } from "../domain/model.ts";

/** The model that examples use: the cheapest one, since people run them. */
export function exampleModel(models: readonly Model[]): Model | undefined {
  const price = (model: Model) => model.inputMicrosPerMillionTokens + model.outputMicrosPerMillionTokens;
  return models.toSorted((one, other) => Number(price(one) - price(other)))[0];
}
