import type { CreditAccountRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import type { Deps } from "../deps.ts";
import { moveBalance } from "./move-balance.ts";

export async function creditAccount(deps: Deps, request: CreditAccountRequest) {
  return await moveBalance(deps, "credit", request);
}
