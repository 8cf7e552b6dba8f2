import { KeyService } from "../../gen/vx/v1/key_pb.js";
import type { NewKey } from "../domain/credentials.ts";
import { laneOfId } from "../domain/lane.ts";
import { readPage } from "../domain/page.ts";
import { DEFAULT_SCOPES, fromScopeBits, toScopeBits } from "../domain/scope.ts";
import {
  createKey as createKeyRow,
  getKey,
  type KeyRow,
  type KeyToCreate,
  listKeys,
  revokeKey as revokeKeyRow,
  rotateKey as rotateKeyRow,
  updateKey as updateKeyRow,
} from "../store/keys.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";
import {
  cidrsOf,
  detailsOfChanges,
  type KeyFields,
  keyChangesOf,
  modelIdsOf,
  newLimitsOf,
  scopesOf,
  textOfLimits,
  type UpdateRequest,
} from "./key-changes.ts";
import { makeLoggedChange, type WithReason } from "./operator-action.ts";
import { dateOf } from "./request-values.ts";
import { viewKey } from "./views.ts";

/** The database knows what a key, a member and an operator may give, at that moment. Only operators choose the plan. */
export async function createKey(
  deps: Deps,
  accountId: string,
  request: KeyFields & WithReason & { readonly plan?: string },
  call: ApiCall,
) {
  const { name, plan = "", rateLimitRpm, reason } = request;
  return await newKey(deps, accountId, request, (key, generated) => {
    const details = {
      name,
      plan,
      scopes: fromScopeBits(key.scopes ?? toScopeBits(DEFAULT_SCOPES)).join(","),
      rate_limit_rpm: rateLimitRpm,
      expires_at: key.expiresAt?.toISOString(),
      models: key.models?.join(","),
      limits: key.limits && textOfLimits(key.limits),
      allowed_cidrs: key.allowedCidrs?.join(","),
    };
    return makeLoggedChange(deps, call, { target: accountId, reason, details }, (action) =>
      createKeyRow(deps.database, action, { ...key, plan }, generated),
    );
  });
}

/** The database limits the changes to what the caller may give at that moment. */
export async function updateKey(deps: Deps, request: UpdateRequest & WithReason, call: ApiCall) {
  const { keyId, reason } = request;
  const changes = keyChangesOf(deps, request);
  const change = { target: keyId, reason, details: detailsOfChanges(changes) };
  const row = await makeLoggedChange(deps, call, change, (action) => updateKeyRow(deps.database, action, keyId, changes));
  return { apiKey: viewKey(row) };
}

type RotateRequest = WithReason & { readonly keyId: string; readonly overlapSeconds: number };

/** The id, and with it the limits and the window of requests, stays. */
export async function rotateKey(deps: Deps, { keyId, overlapSeconds, reason }: RotateRequest, call: ApiCall) {
  const generated = deps.generateKey(laneOfId(call.actor.accountId ?? keyId));
  const change = { target: keyId, reason, details: { overlap_seconds: overlapSeconds } };
  const row = await makeLoggedChange(deps, call, change, (action) =>
    rotateKeyRow(deps.database, action, keyId, generated, overlapSeconds),
  );
  return { apiKey: viewKey(row), secret: generated.secret };
}

/** Revocation is final and immediate. */
export async function revokeKey(deps: Deps, { keyId, reason }: WithReason & { readonly keyId: string }, call: ApiCall) {
  const row = await makeLoggedChange(deps, call, { target: keyId, reason }, (action) =>
    revokeKeyRow(deps.database, action, keyId),
  );
  return { apiKey: viewKey(row) };
}

export const keyService = defineService(KeyService, {
  createKey: (deps, request, call) => createKey(deps, call.key.accountId, request, call),
  listKeys: async ({ database }, request, { key }) => {
    const page = readPage("keys", request);
    const { rows, nextPageToken } = await listKeys(database, key.accountId, page, request.includePlayground);
    return { apiKeys: rows.map(viewKey), nextPageToken };
  },
  /** A key of another account gives not_found, like a key that does not exist. */
  getKey: async ({ database }, { keyId }, { key }) => ({
    apiKey: viewKey(await getKey(database, key.accountId, keyId)),
  }),
  updateKey,
  rotateKey,
  revokeKey,
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
