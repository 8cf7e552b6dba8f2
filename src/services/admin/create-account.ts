import type { CreateAccountRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { createAccount as createAccountRow } from "../../store/accounts.ts";
import type { Deps } from "../deps.ts";
import { viewAccount } from "../views.ts";

const DEFAULT_PLAN = "free";

export async function createAccount(deps: Deps, request: CreateAccountRequest) {
  const plan = request.plan || DEFAULT_PLAN;
  return {
    account: viewAccount(await createAccountRow(deps.database, deps.ids.account(), request.name, plan)),
  };
}
