import type { ListModelsRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { readPage } from "../../domain/page.ts";
import type { Deps } from "../deps.ts";
import { pageOfModels } from "../page-of-models.ts";
import { viewCatalogModel } from "../views.ts";

export async function listModels({ catalog }: Pick<Deps, "catalog">, request: ListModelsRequest) {
  const { rows, nextPageToken } = pageOfModels(catalog, readPage("models", request));
  return { models: rows.map(viewCatalogModel), nextPageToken };
}
