import type { RevokeKeyRequest } from "../../gen/vx/v1/key_pb.js";
import { type Call, callingKey } from "../gate/call.ts";
import { revokeKey as revokeKeyRow } from "../store/keys.ts";
import type { Deps } from "./deps.ts";
import { viewKey } from "./views.ts";

/** Final and immediate (spec 5.5, 5.6); a key may revoke itself. */
export async function revokeKey(deps: Deps, request: RevokeKeyRequest, call: Call) {
  return { apiKey: viewKey(await revokeKeyRow(deps.database, callingKey(call).accountId, request.keyId)) };
}
