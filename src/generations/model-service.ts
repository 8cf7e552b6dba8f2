import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { defineService } from "../api/define-service.ts";
import { allowedModel, modelsOf, selectModels, viewModel } from "./models.ts";

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
