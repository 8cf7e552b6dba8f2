import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListPlansRequest, PlanSchema, PutPlanRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { countPlans, listPlans as listPlanRows, type PlanCounts, type PlanRow, putPlan as putPlanRow } from "./store.ts";

export function viewPlan(row: PlanRow, counts?: PlanCounts): MessageInitShape<typeof PlanSchema> {
  return {
    name: row.name,
    rpm: row.rpm,
    maxActiveKeys: row.max_active_keys,
    maxKeysCreatedPerHour: row.max_keys_created_per_hour,
    ...counts,
  };
}

export async function listPlans({ database }: Deps, { counts }: ListPlansRequest) {
  const [rows, found] = await Promise.all([listPlanRows(database), counts ? countPlans(database) : undefined]);
  return { plans: rows.map((row) => viewPlan(row, found?.get(row.name))) };
}

export async function putPlan(deps: Deps, request: PutPlanRequest, call: ApiCall) {
  const { name, rpm, maxActiveKeys, maxKeysCreatedPerHour, reason } = request;
  const limits = {
    rpm,
    max_active_keys: maxActiveKeys,
    max_keys_created_per_hour: maxKeysCreatedPerHour,
  };
  const row = await makeLoggedChange(deps, call, { target: name, reason, details: limits }, (action) =>
    putPlanRow(deps.database, action, { name, ...limits }),
  );
  return { plan: viewPlan(row) };
}
