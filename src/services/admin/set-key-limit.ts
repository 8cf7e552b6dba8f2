import type { SetKeyLimitRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { setKeyLimit as setKeyLimitRow } from "../../store/keys.ts";
import type { Deps } from "../deps.ts";
import { viewKey } from "../views.ts";

export async function setKeyLimit(deps: Deps, request: SetKeyLimitRequest) {
  return { apiKey: viewKey(await setKeyLimitRow(deps.database, request.keyId, request.rateLimitRpm)) };
}
