import type { CreateKeyRequest } from "../../gen/vx/v1/key_pb.js";
import { type Call, callingKey } from "../gate/call.ts";
import { refused } from "../gate/refused.ts";
import { createChildKey } from "../store/keys.ts";
import type { Deps } from "./deps.ts";
import { newKey, scopesOf } from "./new-key.ts";

/** The database keeps the new key within the scopes, limit and expiry that the calling key has at that moment. */
export async function createKey(deps: Deps, request: CreateKeyRequest, call: Call) {
  const { keyId: parentId, accountId } = callingKey(call);
  try {
    return await newKey(deps, accountId, request, (key, drawn) =>
      createChildKey(deps.database, { ...key, parentId, scopes: scopesOf(request) }, drawn),
    );
  } catch (error) {
    throw refused(call, error);
  }
}
