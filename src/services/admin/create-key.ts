import type { CreateKeyRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import type { Deps } from "../deps.ts";
import { newKey } from "../new-key.ts";

/** Operators may give any scope, any plan, and a limit above the plan's. */
export async function createKey(deps: Deps, request: CreateKeyRequest) {
  return await newKey(
    deps,
    { accountId: request.accountId, plan: request.plan, mayExceedPlan: true },
    request,
  );
}
