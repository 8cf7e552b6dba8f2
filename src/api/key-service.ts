import {
  type CreateKeyRequest,
  type GetKeyRequest,
  KeyService,
  type ListKeysRequest,
  type RevokeKeyRequest,
} from "../../gen/vx/v1/key_pb.js";
import { readPage } from "../domain/page.ts";
import {
  createChildKey,
  getKey as getKeyRow,
  listKeys as listKeyRows,
  revokeKey as revokeKeyRow,
} from "../store/keys.ts";
import type { ApiCall } from "./api-call.ts";
import { defineService } from "./define-service.ts";
import type { Deps } from "./deps.ts";
import { newKey, scopesOf } from "./new-key.ts";
import { viewKey } from "./views.ts";

/**
 * The database limits the new key to the scopes, limit and expiry that the calling key has at that moment.
 */
export async function createKey(deps: Deps, request: CreateKeyRequest, call: ApiCall) {
  const { keyId: parentId, accountId } = call.key;
  return await newKey(deps, accountId, request, (key, generated) =>
    createChildKey(deps.database, { ...key, parentId, scopes: scopesOf(request) }, generated),
  );
}

export async function listKeys(deps: Deps, request: ListKeysRequest, call: ApiCall) {
  const { rows, nextPageToken } = await listKeyRows(
    deps.database,
    call.key.accountId,
    readPage("keys", request),
  );
  return { apiKeys: rows.map(viewKey), nextPageToken };
}

/** A key of another account gives not_found, like a key that does not exist. */
export async function getKey(deps: Deps, request: GetKeyRequest, call: ApiCall) {
  return { apiKey: viewKey(await getKeyRow(deps.database, call.key.accountId, request.keyId)) };
}

/** Revocation is final and immediate. A key may revoke itself. */
export async function revokeKey(deps: Deps, request: RevokeKeyRequest, call: ApiCall) {
  return { apiKey: viewKey(await revokeKeyRow(deps.database, call.key.accountId, request.keyId)) };
}

export const keyService = defineService(KeyService, ({ deps }) => ({
  createKey: (request, call) => createKey(deps, request, call),
  listKeys: (request, call) => listKeys(deps, request, call),
  getKey: (request, call) => getKey(deps, request, call),
  revokeKey: (request, call) => revokeKey(deps, request, call),
}));
