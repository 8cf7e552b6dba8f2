import type { PutPlanRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { putPlan as putPlanRow } from "../../store/plans.ts";
import type { Deps } from "../deps.ts";
import { viewPlan } from "../views.ts";

export async function putPlan(deps: Deps, request: PutPlanRequest) {
  const { name, rpm, maxActiveKeys, maxKeysCreatedPerHour } = request;
  const plan = {
    name,
    rpm,
    max_active_keys: maxActiveKeys,
    max_keys_created_per_hour: maxKeysCreatedPerHour,
  };
  return { plan: viewPlan(await putPlanRow(deps.database, plan)) };
}
