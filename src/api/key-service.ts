import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type CreateKeyRequest,
  type GetKeyRequest,
  KeyService,
  type ListKeysRequest,
  type RevokeKeyRequest,
  type RotateKeyRequest,
  type UpdateKeyRequest,
} from "../../gen/vx/v1/key_pb.js";
import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import type { NewKey } from "../domain/credentials.ts";
import { laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import {
  createChildKey,
  getKey as getKeyRow,
  type KeyRow,
  type KeyToCreate,
  listKeys as listKeyRows,
  revokeKey as revokeKeyRow,
  rotateKey as rotateKeyRow,
  updateKey as updateKeyRow,
} from "../store/keys.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";
import { cidrsOf, keyChangesOf, modelIdsOf, newLimitsOf, scopesOf } from "./key-changes.ts";
import { dateOf } from "./request-values.ts";
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

/** The database limits the changes to what the calling key has at that moment. */
export async function updateKey(deps: Deps, request: UpdateKeyRequest, call: ApiCall) {
  return {
    apiKey: viewKey(await updateKeyRow(deps.database, call.key, request.keyId, keyChangesOf(deps, request))),
  };
}

/** The id, and with it the limits and the window of requests, stays. */
export async function rotateKey(deps: Deps, request: RotateKeyRequest, call: ApiCall) {
  const { keyId, overlapSeconds } = request;
  const generated = deps.generateKey(laneOfId(call.key.accountId));
  const row = await rotateKeyRow(deps.database, call.key, keyId, generated, overlapSeconds);
  return { apiKey: viewKey(row), secret: generated.secret };
}

/** Revocation is final and immediate. A key may revoke itself. */
export async function revokeKey(deps: Deps, request: RevokeKeyRequest, call: ApiCall) {
  return { apiKey: viewKey(await revokeKeyRow(deps.database, call.key.accountId, request.keyId)) };
}

export const keyService = defineService(KeyService, ({ deps }) => ({
  createKey: (request, call) => createKey(deps, request, call),
  listKeys: (request, call) => listKeys(deps, request, call),
  getKey: (request, call) => getKey(deps, request, call),
  updateKey: (request, call) => updateKey(deps, request, call),
  rotateKey: (request, call) => rotateKey(deps, request, call),
  revokeKey: (request, call) => revokeKey(deps, request, call),
}));

type NewKeyRequest = {
  readonly name: string;
  readonly rateLimitRpm?: number | undefined;
  readonly expiresAt?: Timestamp | undefined;
  readonly models: readonly string[];
  readonly limits: readonly Limit[];
  readonly allowedCidrs: readonly string[];
};

type Store = (key: KeyToCreate, generated: NewKey) => Promise<KeyRow>;

/** Creates a random key, stores its fingerprint, and returns its secret, which cannot be read again later. */
export async function newKey(deps: Deps, accountId: string, request: NewKeyRequest, store: Store) {
  const lane = laneOfId(accountId);
  const generated = deps.generateKey(lane);
  const { name, rateLimitRpm, expiresAt, limits } = request;
  const id = deps.ids.key(lane);
  const key = {
    id,
    accountId,
    name,
    rateLimitRpm,
    expiresAt: dateOf("expires_at", expiresAt),
    models: modelIdsOf(deps.catalog, request),
    limits: newLimitsOf(deps, id, limits),
    allowedCidrs: cidrsOf(request),
  };
  return { apiKey: viewKey(await store(key, generated)), secret: generated.secret };
}
