import { type GetUsageRequest, UsageService } from "../../../gen/vx/v1/usage_pb.js";
import { laneOfId } from "../../domain/lane.ts";
import { readPage } from "../../domain/page.ts";
import { readUsage } from "../../store/usage-sums.ts";
import type { ApiCall } from "../api-call.ts";
import { defineService } from "../define-service.ts";
import type { Deps } from "../deps.ts";
import { refusingTooMuch } from "./too-much-usage.ts";
import { usageFiltersOf, usageQueryOf } from "./usage-request.ts";
import { viewUsage } from "./view-usage.ts";

export async function getUsage({ database }: Deps, request: GetUsageRequest, call: ApiCall) {
  const query = await usageQueryOf(database.at(laneOfId(call.key.accountId)), request, [
    "key",
    "model",
    "user",
  ]);
  const page = readPage("usage", request, usageFiltersOf(request, ""));
  const { rows, ...rest } = await refusingTooMuch(readUsage(database, call.key.accountId, query, page));
  return { rows: rows.map(viewUsage), ...rest };
}

export const usageService = defineService(UsageService, ({ deps }) => ({
  getUsage: (request, call) => getUsage(deps, request, call),
}));
