import type { CreateKeyRequest } from "../../../gen/vx/admin/v1/admin_pb.js";
import { DEFAULT_SCOPES, toScopeBits } from "../../domain/scope.ts";
import { createKey as createKeyRow } from "../../store/keys.ts";
import type { Deps } from "../deps.ts";
import { newKey, scopesOf } from "../new-key.ts";

/** Operators may give any scope, any plan, and a limit above the plan's. */
export async function createKey(deps: Deps, request: CreateKeyRequest) {
  const { accountId, plan } = request;
  const scopes = scopesOf(request) ?? toScopeBits(DEFAULT_SCOPES);
  return await newKey(deps, accountId, request, (key, drawn) =>
    createKeyRow(deps.database, { ...key, plan, scopes }, drawn),
  );
}
