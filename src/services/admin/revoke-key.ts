import type { RevokeKeyRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { ANY_ACCOUNT, revokeKey as revokeKeyRow } from "../../store/keys.ts";
import type { Deps } from "../deps.ts";
import { viewKey } from "../views.ts";

export async function revokeKey(deps: Deps, request: RevokeKeyRequest) {
  return { apiKey: viewKey(await revokeKeyRow(deps.database, ANY_ACCOUNT, request.keyId)) };
}
