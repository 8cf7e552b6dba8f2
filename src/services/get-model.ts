import type { GetModelRequest } from "../../gen/vx/v1/model_pb.js";
import { DomainError } from "../domain/errors.ts";
import type { Deps } from "./deps.ts";
import { viewModel } from "./views.ts";

export async function getModel({ catalog }: Pick<Deps, "catalog">, request: GetModelRequest) {
  const model = catalog.get(request.model);
  if (!model) {
    throw new DomainError("model_not_found", {
      message: `There is no model "${request.model}".`,
      fields: [{ field: "model", description: "is no model of this server" }],
    });
  }
  return { model: viewModel(model) };
}
