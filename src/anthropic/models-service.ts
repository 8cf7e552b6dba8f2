import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ModelsService } from "../../gen/vx/anthropic/v1/models_pb.js";
import { defineService } from "../api/define-service.ts";
import type { Model } from "../domain/model.ts";
import { allowedModel, modelsOf, selectModels } from "../generations/models.ts";

const NO = { supported: false };
const YES = { supported: true };

/** A model in Anthropic's format. */
export function modelInfoOf(model: Model) {
  const can = (capability: Model["capabilities"][number]) => (model.capabilities.includes(capability) ? YES : NO);
  const reasons = can("reasoning");
  return {
    type: "model",
    id: model.id,
    displayName: model.id,
    createdAt: timestampFromDate(new Date(model.createdSeconds * 1_000)),
    maxInputTokens: model.contextWindow,
    maxTokens: model.maxOutputTokens,
    lifecycle: "active",
    capabilities: {
      batch: NO,
      citations: NO,
      codeExecution: NO,
      contextManagement: {
        ...NO,
        clearThinking20251015: NO,
        clearToolUses20250919: NO,
        compact20260112: NO,
      },
      effort: { ...reasons, low: reasons, medium: reasons, high: reasons, xhigh: reasons, max: reasons },
      imageInput: can("images"),
      pdfInput: NO,
      serverTools: { ...NO, codeExecution: NO, webSearch: NO },
      structuredOutputs: can("json_schema"),
      thinking: {
        ...reasons,
        types: { adaptive: reasons, betweenTools: reasons, disabled: YES, enabled: reasons },
      },
    },
  };
}

export const modelsService = defineService(ModelsService, {
  listModelInfos: async ({ catalog }, { limit, afterId, beforeId }, { key }) => {
    const selection = { pageSize: 0, pageToken: "", limit, afterId, beforeId };
    const { rows, hasMore } = selectModels(modelsOf(catalog, key), selection);
    const [first, last] = [rows[0], rows.at(-1)];
    return {
      data: rows.map(modelInfoOf),
      hasMore,
      ...(first && { firstId: first.id }),
      ...(last && { lastId: last.id }),
    };
  },
  getModelInfo: async ({ catalog }, { model }, { key }) => ({
    model: modelInfoOf(allowedModel(catalog, key, model)),
  }),
});
