import { type GetModelRequest, type ListModelsRequest, ModelService } from "../../gen/vx/v1/model_pb.js";
import { DomainError } from "../domain/errors.ts";
import { readPage } from "../domain/page.ts";
import { defineService } from "./define-service.ts";
import type { Deps } from "./deps.ts";
import { pageOfModels } from "./page-of-models.ts";
import { viewModel } from "./views.ts";

export async function listModels({ catalog }: Pick<Deps, "catalog">, request: ListModelsRequest) {
  const { rows, nextPageToken } = pageOfModels(catalog, readPage("models", request));
  return { object: "list", data: rows.map(viewModel), nextPageToken };
}

export async function getModel({ catalog }: Pick<Deps, "catalog">, request: GetModelRequest) {
  const model = catalog.get(request.model);
  if (!model) {
    throw new DomainError("model_not_found", {
      message: `There is no model "${request.model}".`,
      fields: [{ field: "model", description: "does not exist on this server" }],
    });
  }
  return { model: viewModel(model) };
}

export const modelService = defineService(ModelService, ({ deps }) => ({
  listModels: (request) => listModels(deps, request),
  getModel: (request) => getModel(deps, request),
}));
