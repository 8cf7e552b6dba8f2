import type { GetAccountRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { getAccount as getAccountRow } from "../../store/accounts.ts";
import type { Deps } from "../deps.ts";
import { viewAccount } from "../views.ts";

export async function getAccount(deps: Deps, request: GetAccountRequest) {
  return { account: viewAccount(await getAccountRow(deps.database, request.accountId)) };
}
