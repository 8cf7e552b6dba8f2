import { type ListModelsRequest, ModelService } from "../../gen/vx/v1/model_pb.js";
import { isAllowed } from "../billing/check-request.ts";
import { modelNotAllowed, unknownModel } from "../billing/refusals.ts";
import { DomainError } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import { cutPage, type Page, readPage } from "../domain/page.ts";
import type { Catalog } from "../models/catalog.ts";
import type { AdmittedKey } from "../store/admit.ts";
import { defineService } from "./define-service.ts";
import { viewModel } from "./views.ts";

/** Anthropic's clients select a page by `limit` and the id of a model, all others by a token. */
export function selectModels(
  models: readonly Model[],
  request: Pick<ListModelsRequest, "pageSize" | "pageToken" | "limit" | "afterId" | "beforeId">,
): PageOfModels {
  const { pageSize, limit, pageToken, afterId, beforeId } = request;
  if (limit > 0 && pageSize > 0 && limit !== pageSize)
    throw DomainError.ofField("limit", 'must be equal to "page_size" if both are given');
  if (afterId !== "" && beforeId !== "") throw DomainError.ofField("before_id", 'cannot be given together with "after_id"');
  if (pageToken !== "" && afterId + beforeId !== "")
    throw DomainError.ofField("page_token", 'cannot be given together with "after_id" or "before_id"');
  const page = readPage("models", { pageSize: limit || pageSize, pageToken });
  if (beforeId !== "") return pageOfModelsBefore(models, page, beforeId);
  return pageOfModels(models, afterId === "" ? page : { ...page, after: afterId });
}

export function modelsOf(catalog: Catalog, key: AdmittedKey): readonly Model[] {
  return key.models === undefined ? catalog.list() : catalog.list().filter((model) => isAllowed(key, model));
}

export function allowedModel(catalog: Catalog, key: AdmittedKey, id: string): Model {
  const model = catalog.get(id);
  if (!model) throw unknownModel(id, modelsOf(catalog, key));
  if (!isAllowed(key, model)) throw modelNotAllowed(key, model);
  return model;
}

export const modelService = defineService(ModelService, {
  listModels: async ({ catalog, priceLists }, request, { key }) => {
    const { rows, nextPageToken, hasMore } = selectModels(modelsOf(catalog, key), request);
    return {
      object: "list",
      data: (await Promise.all(rows.map((model) => priceLists.modelFor(key, model)))).map(viewModel),
      nextPageToken,
      hasMore,
      firstId: rows[0]?.id ?? "",
      lastId: rows.at(-1)?.id ?? "",
    };
  },
  getModel: async ({ catalog, priceLists }, { model }, { key }) => ({
    model: viewModel(await priceLists.modelFor(key, allowedModel(catalog, key, model))),
  }),
});

type PageOfModels = {
  readonly rows: readonly Model[];
  readonly nextPageToken: string;
  readonly hasMore: boolean;
};

/** Ordered by id. If the catalog changes between two pages, no remaining model is repeated or skipped. */
export function pageOfModels(models: readonly Model[], page: Page): PageOfModels {
  const rest = models.filter(({ id }) => id > page.after);
  const { rows, nextPageToken } = cutPage(rest.slice(0, page.size + 1), page, ({ id }) => id);
  return { rows, nextPageToken, hasMore: nextPageToken !== "" };
}

/** The last models before the one with this id, ordered by id. */
function pageOfModelsBefore(models: readonly Model[], { size }: Page, beforeId: string): PageOfModels {
  const rest = models.filter(({ id }) => id < beforeId);
  return { rows: rest.slice(-size), nextPageToken: "", hasMore: rest.length > size };
}
