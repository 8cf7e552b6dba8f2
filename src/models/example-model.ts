import { type Model, TASK_KINDS } from "../domain/model.ts";
import { BUILT_IN_MODELS } from "./built-in.ts";

/** The model of an example. */
export type ExampleModel = {
  readonly model: Model;
  /** For a placeholder: why no model of the server can run the example. */
  readonly missing: string | undefined;
};

/** The models in examples, by what the examples need. */
export type ExampleModels = {
  readonly generation: ExampleModel;
  readonly tools: ExampleModel;
  readonly completion: ExampleModel;
  readonly embeddings: ExampleModel;
};

const createsVectors = ({ capabilities }: Model) => capabilities.includes("embeddings");
const generates = (model: Model) => !createsVectors(model);
const callsTools = (model: Model) => generates(model) && model.capabilities.includes("tools");
const completesTexts = (model: Model) =>
  generates(model) && model.upstreams.every(({ kind }) => TASK_KINDS.includes(kind));

/** For each need the cheapest model that meets it, because people run the examples. */
export function exampleModels(models: readonly Model[]): ExampleModels {
  return {
    generation: cheapest(models.filter(generates), "MODEL", "generates text"),
    tools: cheapest(models.filter(callsTools), "MODEL", "has the capability `tools`"),
    completion: cheapest(models.filter(completesTexts), "MODEL", "completes texts"),
    embeddings: cheapest(models.filter(createsVectors), "EMBEDDING_MODEL", "has the capability `embeddings`"),
  };
}

function cheapest(models: readonly Model[], placeholder: string, ability: string): ExampleModel {
  const price = ({ prices }: Model) => prices.input + prices.output;
  const [model] = models.toSorted((one, other) => Number(price(one) - price(other)));
  if (model) return { model, missing: undefined };
  return {
    model: { ...(BUILT_IN_MODELS[0] as Model), id: placeholder },
    missing: `No model of this server ${ability}: \`${placeholder}\` in the example is a placeholder.`,
  };
}
