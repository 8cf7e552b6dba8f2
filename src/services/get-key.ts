import type { GetKeyRequest } from "../../gen/vx/v1/key_pb.js";
import { type Call, callingKey } from "../gate/call.ts";
import { getKey as getKeyRow } from "../store/keys.ts";
import type { Deps } from "./deps.ts";
import { viewKey } from "./views.ts";

/** A key of another account is not found, like one that does not exist. */
export async function getKey(deps: Deps, request: GetKeyRequest, call: Call) {
  return { apiKey: viewKey(await getKeyRow(deps.database, callingKey(call).accountId, request.keyId)) };
}
