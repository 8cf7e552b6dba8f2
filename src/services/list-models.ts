import type { ListModelsRequest } from "../../gen/vx/v1/model_pb.js";
import { readPage } from "../domain/page.ts";
import type { Deps } from "./deps.ts";
import { pageOfModels } from "./page-of-models.ts";
import { viewModel } from "./views.ts";

export async function listModels({ catalog }: Pick<Deps, "catalog">, request: ListModelsRequest) {
  const { rows, nextPageToken } = pageOfModels(catalog, readPage("models", request));
  return { object: "list", data: rows.map(viewModel), nextPageToken };
}
