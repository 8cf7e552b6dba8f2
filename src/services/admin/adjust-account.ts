import type { AdjustAccountRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import type { Deps } from "../deps.ts";
import { moveBalance } from "./move-balance.ts";

export async function adjustAccount(deps: Deps, request: AdjustAccountRequest) {
  return await moveBalance(deps, "adjustment", request);
}
