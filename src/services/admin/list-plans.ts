import { listPlans as listPlanRows } from "../../store/plans.ts";
import type { Deps } from "../deps.ts";
import { viewPlan } from "../views.ts";

export async function listPlans(deps: Deps) {
  return { plans: (await listPlanRows(deps.database)).map(viewPlan) };
}
