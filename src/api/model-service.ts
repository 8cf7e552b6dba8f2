import { type GetModelRequest, type ListModelsRequest, ModelService } from "../../gen/vx/v1/model_pb.js";
import { unknownModel } from "../billing/refusals.ts";
import { DomainError } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import { cutPage, type Page, readPage } from "../domain/page.ts";
import type { Catalog } from "../models/catalog.ts";
import { type Deps, defineService } from "./define-service.ts";
import { viewModel } from "./views.ts";

/** Anthropic's clients select a page by `limit` and the id of a model, all others by a token. */
export function selectModels(
  catalog: Catalog,
  request: Pick<ListModelsRequest, "pageSize" | "pageToken" | "limit" | "afterId" | "beforeId">,
): PageOfModels {
  const { pageSize, limit, pageToken, afterId, beforeId } = request;
  if (limit > 0 && pageSize > 0 && limit !== pageSize)
    throw DomainError.ofField("limit", 'must be equal to "page_size" if both are given');
  if (afterId !== "" && beforeId !== "")
    throw DomainError.ofField("before_id", 'cannot be given together with "after_id"');
  if (pageToken !== "" && afterId + beforeId !== "")
    throw DomainError.ofField("page_token", 'cannot be given together with "after_id" or "before_id"');
  const page = readPage("models", { pageSize: limit || pageSize, pageToken });
  if (beforeId !== "") return pageOfModelsBefore(catalog, page, beforeId);
  return pageOfModels(catalog, afterId === "" ? page : { ...page, after: afterId });
}

export async function listModels({ catalog }: Pick<Deps, "catalog">, request: ListModelsRequest) {
  const { rows, nextPageToken, hasMore } = selectModels(catalog, request);
  return {
    object: "list",
    data: rows.map(viewModel),
    nextPageToken,
    hasMore,
    firstId: rows[0]?.id ?? "",
    lastId: rows.at(-1)?.id ?? "",
  };
}

export async function getModel({ catalog }: Pick<Deps, "catalog">, request: GetModelRequest) {
  return { model: viewModel(knownModel(catalog, request.model)) };
}

export function knownModel(catalog: Catalog, id: string): Model {
  const model = catalog.get(id);
  if (!model) throw unknownModel(id, catalog.list());
  return model;
}

export const modelService = defineService(ModelService, ({ deps }) => ({
  listModels: (request) => listModels(deps, request),
  getModel: (request) => getModel(deps, request),
}));

type PageOfModels = {
  readonly rows: readonly Model[];
  readonly nextPageToken: string;
  readonly hasMore: boolean;
};

/** Ordered by id. If the catalog changes between two pages, no remaining model is repeated or skipped. */
export function pageOfModels(catalog: Catalog, page: Page): PageOfModels {
  const rest = catalog.list().filter(({ id }) => id > page.after);
  const { rows, nextPageToken } = cutPage(rest.slice(0, page.size + 1), page, ({ id }) => id);
  return { rows, nextPageToken, hasMore: nextPageToken !== "" };
}

/** The last models before the one with this id, ordered by id. */
function pageOfModelsBefore(catalog: Catalog, { size }: Page, beforeId: string): PageOfModels {
  const rest = catalog.list().filter(({ id }) => id < beforeId);
  return { rows: rest.slice(-size), nextPageToken: "", hasMore: rest.length > size };
}
