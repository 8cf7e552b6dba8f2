import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { NewKey } from "../domain/api-key.ts";
import { laneOfId } from "../domain/lane.ts";
import { isScope, type ScopeBits, toScopeBits } from "../domain/scope.ts";
import type { KeyRow, KeyToCreate } from "../store/keys.ts";
import { dateOf } from "./date-of.ts";
import type { Deps } from "./deps.ts";
import { viewKey } from "./views.ts";

type NewKeyRequest = {
  readonly name: string;
  readonly rateLimitRpm?: number | undefined;
  readonly expiresAt?: Timestamp | undefined;
};

type Store = (key: KeyToCreate, generated: NewKey) => Promise<KeyRow>;

/** Creates a random key, stores its fingerprint, and returns its secret, which cannot be read again later. */
export async function newKey(deps: Deps, accountId: string, request: NewKeyRequest, store: Store) {
  const lane = laneOfId(accountId);
  const generated = deps.generateKey(lane);
  const { name, rateLimitRpm, expiresAt } = request;
  const key = {
    id: deps.ids.key(lane),
    accountId,
    name,
    rateLimitRpm,
    expiresAt: dateOf("expires_at", expiresAt),
  };
  return { apiKey: viewKey(await store(key, generated)), secret: generated.secret };
}

/** Undefined if the request has no scopes. */
export function scopesOf(request: { readonly scopes: readonly string[] }): ScopeBits | undefined {
  return request.scopes.length === 0 ? undefined : toScopeBits(request.scopes.filter(isScope));
}
