import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { ApiCall, Deps } from "../api/define-service.ts";
import type { NewKey } from "../domain/credentials.ts";
import { laneOfId } from "../domain/lane.ts";
import { DEFAULT_SCOPES } from "../domain/scope.ts";
import { makeLoggedChange, type WithReason } from "../operators/operator-action.ts";
import { columnsOf, detailsOf, type KeyProperties, keyChangesOf, keyValuesOf, viewKey } from "./fields.ts";
import {
  createKey as createKeyRow,
  type KeyRow,
  type KeyToCreate,
  revokeKey as revokeKeyRow,
  rotateKey as rotateKeyRow,
  updateKey as updateKeyRow,
} from "./store.ts";

/** The database knows what a key, a member and an operator may give, at that moment. Only operators choose the plan. */
export async function createKey(
  deps: Deps,
  accountId: string,
  request: KeyProperties & WithReason & { readonly plan?: string },
  call: ApiCall,
) {
  const { plan = "", reason } = request;
  return await newKey(deps, accountId, request, (key, generated, given) => {
    const details = { plan, scopes: DEFAULT_SCOPES.join(","), ...given };
    return makeLoggedChange(deps, call, { target: accountId, reason, details }, (action) =>
      createKeyRow(deps.database, action, { ...key, plan }, generated),
    );
  });
}

type UpdateRequest = KeyProperties & WithReason & { readonly keyId: string; readonly updateMask?: FieldMask | undefined };

/** The database limits the changes to what the caller may give at that moment. */
export async function updateKey(deps: Deps, request: UpdateRequest, call: ApiCall) {
  const { keyId, updateMask, reason } = request;
  const changes = keyChangesOf(deps, keyId, request, updateMask?.paths);
  const change = { target: keyId, reason, details: detailsOf(changes) };
  const row = await makeLoggedChange(deps, call, change, (action) =>
    updateKeyRow(deps.database, action, keyId, columnsOf(changes)),
  );
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

type Store = (key: KeyToCreate, generated: NewKey, details: ReturnType<typeof detailsOf>) => Promise<KeyRow>;

/** Creates a random key, stores its fingerprint, and returns its secret, which cannot be read again later. */
export async function newKey(deps: Deps, accountId: string, request: KeyProperties, store: Store) {
  const lane = laneOfId(accountId);
  const generated = deps.generateKey(lane);
  const id = deps.ids.key(lane);
  const values = keyValuesOf(deps, id, request);
  const row = await store({ id, accountId, columns: columnsOf(values) }, generated, detailsOf(values));
  return { apiKey: viewKey(row), secret: generated.secret };
}
