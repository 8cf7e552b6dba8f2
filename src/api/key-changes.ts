import type { FieldMask, Timestamp } from "@bufbuild/protobuf/wkt";
import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { readRange } from "../domain/network.ts";
import { fromScopeBits, isScope, type ScopeBits, toScopeBits } from "../domain/scope.ts";
import type { Catalog } from "../models/catalog.ts";
import type { KeyChanges } from "../store/keys.ts";
import { type NewLimit, newLimitOf } from "../store/limits.ts";
import type { Deps } from "./define-service.ts";
import { limitsToSet } from "./limit-service.ts";
import { dateOf } from "./request-values.ts";

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
