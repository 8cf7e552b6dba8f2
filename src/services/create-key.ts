import type { CreateKeyRequest } from "../../gen/vx/v1/key_pb.js";
import { DomainError } from "../domain/errors.ts";
import { type Call, callingKey } from "../gate/call.ts";
import type { Deps } from "./deps.ts";
import { newKey, scopesOf } from "./new-key.ts";

/** A key passes on at most what it has itself: its scopes, its plan, and the plan's limit. */
export async function createKey(deps: Deps, request: CreateKeyRequest, call: Call) {
  const key = callingKey(call);
  const missing = scopesOf(request).filter((scope) => !key.scopes.includes(scope));
  if (missing.length > 0) {
    throw new DomainError("insufficient_scope", {
      message: `The calling key cannot pass on scopes it does not have: ${missing.join(", ")}.`,
      metadata: { scope: missing.join(",") },
    });
  }
  return await newKey(deps, { accountId: key.accountId, plan: key.plan, mayExceedPlan: false }, request);
}
