import type { FieldMask, Timestamp } from "@bufbuild/protobuf/wkt";
import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import type { NewKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { readRange } from "../domain/network.ts";
import { DEFAULT_SCOPES, fromScopeBits, isScope, type ScopeBits, toScopeBits } from "../domain/scope.ts";
import { limitsToSet } from "../limits/changes.ts";
import { type NewLimit, newLimitOf } from "../limits/store.ts";
import type { Catalog } from "../models/catalog.ts";
import { makeLoggedChange, type WithReason } from "../operators/operator-action.ts";
import { dateOf } from "../rules/request-values.ts";
import {
  createKey as createKeyRow,
  type KeyChanges,
  type KeyRow,
  type KeyToCreate,
  revokeKey as revokeKeyRow,
  rotateKey as rotateKeyRow,
  updateKey as updateKeyRow,
} from "./store.ts";
import { viewKey } from "./views.ts";

/** What requests to create and to change a key have in both APIs. */
export type KeyFields = {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly rateLimitRpm?: number | undefined;
  readonly expiresAt?: Timestamp | undefined;
  readonly models: readonly string[];
  readonly limits: readonly Limit[];
  readonly allowedCidrs: readonly string[];
};

export type UpdateRequest = KeyFields & {
  readonly keyId: string;
  readonly updateMask?: FieldMask | undefined;
};

/** The value of each field that can change; undefined if it is not set. */
const VALUES = {
  name: ({ name }) => name || undefined,
  scopes: scopesOf,
  rate_limit_rpm: ({ rateLimitRpm }) => rateLimitRpm,
  expires_at: ({ expiresAt }) => dateOf("expires_at", expiresAt),
  models: (request, { catalog }) => modelIdsOf(catalog, request),
  allowed_cidrs: cidrsOf,
  limits: (request, deps) => newLimitsOf(deps, request.keyId, request.limits),
} as const satisfies Record<keyof KeyChanges, (request: UpdateRequest, deps: Deps) => unknown>;

const NAMES = Object.keys(VALUES) as (keyof KeyChanges)[];

/** Every key has a name and a scope. */
const REQUIRED: readonly string[] = ["name", "scopes"] satisfies (keyof KeyChanges)[];

/** The fields in the mask change; without a mask, those that are set. */
export function keyChangesOf(deps: Deps, request: UpdateRequest): KeyChanges {
  const named = request.updateMask?.paths;
  const unknown = named?.find((path) => !(NAMES as string[]).includes(path));
  if (unknown !== undefined) throw DomainError.ofField("update_mask", `must have only these fields: ${NAMES.join(", ")}`);
  const changes = NAMES.map((name) => [name, VALUES[name](request, deps) ?? null] as const).filter(
    ([name, value]) => named?.includes(name) ?? value !== null,
  );
  for (const [name, value] of changes)
    if (value === null && REQUIRED.includes(name)) throw DomainError.ofField(name, "must not be empty");
  return Object.fromEntries(changes);
}

export function detailsOfChanges({
  name,
  scopes,
  rate_limit_rpm: rpm,
  expires_at: expiry,
  models,
  limits,
  allowed_cidrs: cidrs,
}: KeyChanges) {
  return {
    name,
    scopes: scopes && fromScopeBits(scopes).join(","),
    rate_limit_rpm: rpm === null ? "default" : rpm,
    expires_at: expiry === null ? "never" : expiry?.toISOString(),
    models: models === null ? "all" : models?.join(","),
    allowed_cidrs: cidrs === null ? "all" : cidrs?.join(","),
    limits: limits === null ? "none" : limits && textOfLimits(limits),
  };
}

/** The limits of a key for the log. */
export function textOfLimits(limits: readonly NewLimit[]): string {
  return limits
    .map(({ metric, period, model, per_user: perUser, amount, temporary_amount: temporary, ...limit }) =>
      [
        [metric, period, model, perUser ? "user" : ""].filter((part) => part !== "").join(" "),
        amount,
        temporary && `${temporary} until ${limit.temporary_until?.toISOString()}`,
      ]
        .filter((part) => part !== undefined)
        .join(": "),
    )
    .join("; ");
}

/** The address ranges of the request in their canonical form. Undefined if it has none. */
export function cidrsOf({ allowedCidrs }: { readonly allowedCidrs: readonly string[] }) {
  const ranges = allowedCidrs.map((text, i) => {
    const read = readRange(text);
    if ("problem" in read) throw DomainError.ofField(`allowed_cidrs[${i}]`, read.problem);
    return read.range;
  });
  return ranges.length === 0 ? undefined : [...new Set(ranges)];
}

export function newLimitsOf(deps: Deps, id: string, limits: readonly Limit[]): NewLimit[] | undefined {
  if (limits.length === 0) return undefined;
  return limitsToSet(deps, limits).map((limit) => newLimitOf(limit, laneOfId(id), deps.ids));
}

export function scopesOf(request: { readonly scopes: readonly string[] }): ScopeBits | undefined {
  return request.scopes.length === 0 ? undefined : toScopeBits(request.scopes.filter(isScope));
}

/** The ids of the models that the request names, by id or alias. Undefined if it names none. */
export function modelIdsOf(catalog: Catalog, { models }: { readonly models: readonly string[] }): string[] | undefined {
  const ids = models.map((name, i) => {
    const model = catalog.get(name);
    if (!model) throw DomainError.ofField(`models[${i}]`, "is not the id or alias of a model");
    return model.id;
  });
  return ids.length === 0 ? undefined : [...new Set(ids)];
}

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
