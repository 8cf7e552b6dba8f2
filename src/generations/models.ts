import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  CatalogModelSchema,
  ListModelsRequest as ListCatalogModelsRequest,
  ModelUpstreamSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import type { ListModelsRequest, ModelSchema } from "../../gen/vx/v1/model_pb.js";
import type { Deps } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import type { Model, UpstreamSettings } from "../domain/model.ts";
import { cutPage, type Page, readPage } from "../domain/page.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { Catalog } from "../models/catalog.ts";
import { viewPrices } from "../prices/views.ts";
import { isAllowed } from "./check-request.ts";
import { modelNotAllowed, unknownModel } from "./refusals.ts";

function commonFields(model: Model) {
  return {
    id: model.id,
    ownedBy: model.ownedBy,
    created: BigInt(model.createdSeconds),
    contextWindow: model.contextWindow,
    maxOutputTokens: model.maxOutputTokens,
    inputMicrosPerMillionTokens: model.prices.input,
    outputMicrosPerMillionTokens: model.prices.output,
    prices: viewPrices(model.prices),
    capabilities: [...model.capabilities],
    aliases: [...model.aliases],
  };
}

export function viewModel(model: Model): MessageInitShape<typeof ModelSchema> {
  return {
    ...commonFields(model),
    object: "model",
    type: "model",
    displayName: model.id,
    createdAt: timestampFromDate(new Date(model.createdSeconds * 1_000)),
  };
}

/** For operators: includes the upstreams, but no upstream API key. */
function viewCatalogModel(model: Model): MessageInitShape<typeof CatalogModelSchema> {
  return { ...commonFields(model), upstreams: model.upstreams.map(viewUpstream) };
}

function viewUpstream(upstream: UpstreamSettings): MessageInitShape<typeof ModelUpstreamSchema> {
  const { kind, weight = 0 } = upstream;
  const cost = upstream.cost ? { cost: viewPrices(upstream.cost) } : {};
  if (upstream.kind === "sandbox") return { kind, weight, ...cost };
  const { baseUrl, model, timeoutMs } = upstream;
  return { kind, baseUrl, model, timeoutMs, weight, ...cost };
}

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

type PageOfModels = {
  readonly rows: readonly Model[];
  readonly nextPageToken: string;
  readonly hasMore: boolean;
};

/** Ordered by id. If the catalog changes between two pages, no remaining model is repeated or skipped. */
function pageOfModels(models: readonly Model[], page: Page): PageOfModels {
  const rest = models.filter(({ id }) => id > page.after);
  const { rows, nextPageToken } = cutPage(rest.slice(0, page.size + 1), page, ({ id }) => id);
  return { rows, nextPageToken, hasMore: nextPageToken !== "" };
}

/** The last models before the one with this id, ordered by id. */
function pageOfModelsBefore(models: readonly Model[], { size }: Page, beforeId: string): PageOfModels {
  const rest = models.filter(({ id }) => id < beforeId);
  return { rows: rest.slice(-size), nextPageToken: "", hasMore: rest.length > size };
}

/** For operators, in the order of their ids. */
export async function listCatalogModels({ catalog }: Pick<Deps, "catalog">, request: ListCatalogModelsRequest) {
  const { rows, nextPageToken } = pageOfModels(catalog.list(), readPage("models", request));
  return { models: rows.map(viewCatalogModel), nextPageToken };
}
