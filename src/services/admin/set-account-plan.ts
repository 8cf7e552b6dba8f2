import type { SetAccountPlanRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { setAccountPlan as setAccountPlanRow } from "../../store/accounts.ts";
import type { Deps } from "../deps.ts";
import { viewAccount } from "../views.ts";

export async function setAccountPlan(deps: Deps, request: SetAccountPlanRequest) {
  return { account: viewAccount(await setAccountPlanRow(deps.database, request.accountId, request.plan)) };
}
