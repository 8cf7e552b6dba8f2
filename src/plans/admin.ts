import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ListPlansRequest, PlanSchema, type PutPlanRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { viewOf } from "../api/view.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { countPlans, listPlans as listPlanRows, type PlanCounts, type PlanRow, putPlan as putPlanRow } from "./store.ts";

function viewPlan(row: PlanRow, counts?: PlanCounts): MessageInitShape<typeof PlanSchema> {
  return viewOf(PlanSchema, row, { ...counts });
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
