import { KeyService } from "../../gen/vx/v1/key_pb.js";
import type { NewKey } from "../domain/credentials.ts";
import { laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { createKey, getKey, type KeyRow, type KeyToCreate, listKeys, revokeKey, rotateKey, updateKey } from "../store/keys.ts";
import { type Deps, defineService } from "./define-service.ts";
import { cidrsOf, type KeyFields, keyChangesOf, modelIdsOf, newLimitsOf, scopesOf } from "./key-changes.ts";
import { dateOf } from "./request-values.ts";
import { viewKey } from "./views.ts";

export const keyService = defineService(KeyService, {
  /** The database limits the new key to the scopes, limit and expiry that the calling key has at that moment. */
  createKey: async (deps, request, { key: { accountId }, action }) =>
    await newKey(deps, accountId, request, (key, generated) => createKey(deps.database, action, key, generated)),
  listKeys: async ({ database }, request, { key }) => {
    const page = readPage("keys", request);
    const { rows, nextPageToken } = await listKeys(database, key.accountId, page, request.includePlayground);
    return { apiKeys: rows.map(viewKey), nextPageToken };
  },
  /** A key of another account gives not_found, like a key that does not exist. */
  getKey: async ({ database }, { keyId }, { key }) => ({
    apiKey: viewKey(await getKey(database, key.accountId, keyId)),
  }),
  /** The database limits the changes to what the calling key has at that moment. */
  updateKey: async (deps, request, { action }) => ({
    apiKey: viewKey(await updateKey(deps.database, action, request.keyId, keyChangesOf(deps, request))),
  }),
  /** The id, and with it the limits and the window of requests, stays. */
  rotateKey: async ({ database, generateKey }, { keyId, overlapSeconds }, { key, action }) => {
    const generated = generateKey(laneOfId(key.accountId));
    const row = await rotateKey(database, action, keyId, generated, overlapSeconds);
    return { apiKey: viewKey(row), secret: generated.secret };
  },
  /** Revocation is final and immediate. */
  revokeKey: async ({ database }, { keyId }, { action }) => ({
    apiKey: viewKey(await revokeKey(database, action, keyId)),
  }),
});

type Store = (key: KeyToCreate, generated: NewKey) => Promise<KeyRow>;

/** Creates a random key, stores its fingerprint, and returns its secret, which cannot be read again later. */
export async function newKey(deps: Deps, accountId: string, request: KeyFields, store: Store) {
  const lane = laneOfId(accountId);
  const generated = deps.generateKey(lane);
  const { name, rateLimitRpm, expiresAt, limits } = request;
  const id = deps.ids.key(lane);
  const key = {
    id,
    accountId,
    name,
    scopes: scopesOf(request),
    rateLimitRpm,
    expiresAt: dateOf("expires_at", expiresAt),
    models: modelIdsOf(deps.catalog, request),
    limits: newLimitsOf(deps, id, limits),
    allowedCidrs: cidrsOf(request),
  };
  return { apiKey: viewKey(await store(key, generated)), secret: generated.secret };
}
