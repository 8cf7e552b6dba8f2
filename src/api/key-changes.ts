import type { FieldMask, Timestamp } from "@bufbuild/protobuf/wkt";
import { DomainError } from "../domain/errors.ts";
import { fromScopeBits, isScope, type ScopeBits, toScopeBits } from "../domain/scope.ts";
import type { Catalog } from "../models/catalog.ts";
import type { KeyChanges } from "../store/keys.ts";
import { dateOf } from "./request-values.ts";

/** What a request to change a key has in both APIs. */
type UpdateRequest = {
  readonly name: string;
  readonly scopes: string[];
  readonly rateLimitRpm?: number | undefined;
  readonly expiresAt?: Timestamp | undefined;
  readonly models: readonly string[];
  readonly updateMask?: FieldMask | undefined;
};

/** The value of each field that can change; undefined if it is not set. */
const VALUES = {
  name: ({ name }) => name || undefined,
  scopes: scopesOf,
  rate_limit_rpm: ({ rateLimitRpm }) => rateLimitRpm,
  expires_at: ({ expiresAt }) => dateOf("expires_at", expiresAt),
  models: (request, catalog) => modelIdsOf(catalog, request),
} as const satisfies Record<keyof KeyChanges, (request: UpdateRequest, catalog: Catalog) => unknown>;

const NAMES = Object.keys(VALUES) as (keyof KeyChanges)[];

/** Every key has a name and a scope. */
const REQUIRED: readonly string[] = ["name", "scopes"] satisfies (keyof KeyChanges)[];

/** The fields in the mask change; without a mask, those that are set. */
export function keyChangesOf(catalog: Catalog, request: UpdateRequest): KeyChanges {
  const named = request.updateMask?.paths;
  const unknown = named?.find((path) => !(NAMES as string[]).includes(path));
  if (unknown !== undefined)
    throw DomainError.ofField("update_mask", `must have only these fields: ${NAMES.join(", ")}`);
  const changes = NAMES.map((name) => [name, VALUES[name](request, catalog) ?? null] as const).filter(
    ([name, value]) => named?.includes(name) ?? value !== null,
  );
  for (const [name, value] of changes)
    if (value === null && REQUIRED.includes(name)) throw DomainError.ofField(name, "must not be empty");
  return Object.fromEntries(changes);
}

/** The changes for the log of operators. */
export function detailsOfChanges({
  name,
  scopes,
  rate_limit_rpm: rpm,
  expires_at: expiry,
  models,
}: KeyChanges) {
  return {
    name,
    scopes: scopes && fromScopeBits(scopes).join(","),
    rate_limit_rpm: rpm === null ? "default" : rpm,
    expires_at: expiry === null ? "never" : expiry?.toISOString(),
    models: models === null ? "all" : models?.join(","),
  };
}

/** Undefined if the request has no scopes. */
export function scopesOf(request: { readonly scopes: readonly string[] }): ScopeBits | undefined {
  return request.scopes.length === 0 ? undefined : toScopeBits(request.scopes.filter(isScope));
}

/** The ids of the models that the request names, by id or alias. Undefined if it names none. */
export function modelIdsOf(
  catalog: Catalog,
  { models }: { readonly models: readonly string[] },
): string[] | undefined {
  const ids = models.map((name, i) => {
    const model = catalog.get(name);
    if (!model) throw DomainError.ofField(`models[${i}]`, "is not the id or alias of a model");
    return model.id;
  });
  return ids.length === 0 ? undefined : [...new Set(ids)];
}
