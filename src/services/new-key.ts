import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { DEFAULT_SCOPES, isScope, type Scope, toScopeBits } from "../domain/scope.ts";
import { createKey, type KeyToCreate } from "../store/keys.ts";
import type { Deps } from "./deps.ts";
import { viewKey } from "./views.ts";

type NewKeyRequest = {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly rateLimitRpm?: number | undefined;
  readonly expiresAt?: Timestamp | undefined;
};

type NewKeyPlace = Pick<KeyToCreate, "accountId" | "plan" | "mayExceedPlan">;

/** Draws a key, stores what may be stored of it, and returns it whole: the only time anyone sees it. */
export async function newKey(deps: Deps, place: NewKeyPlace, request: NewKeyRequest) {
  const lane = laneOfId(place.accountId);
  const drawn = deps.drawKey(lane);
  const row = await createKey(
    deps.database,
    {
      ...place,
      id: deps.ids.key(lane),
      name: request.name,
      scopes: toScopeBits(scopesOf(request)),
      rateLimitRpm: request.rateLimitRpm,
      expiresAt: request.expiresAt && dateOf(request.expiresAt),
    },
    drawn,
  );
  return { apiKey: viewKey(row), secret: drawn.secret };
}

export function scopesOf(request: Pick<NewKeyRequest, "scopes">): readonly Scope[] {
  return request.scopes.length === 0 ? DEFAULT_SCOPES : request.scopes.filter(isScope);
}

/** The times that both a timestamp message and PostgreSQL can hold. */
function dateOf(timestamp: Timestamp): Date {
  const date = timestampDate(timestamp);
  if (!(date.getTime() >= 0 && date.getUTCFullYear() <= 9999)) {
    throw DomainError.ofField("expires_at", "must be a time between the years 1970 and 9999");
  }
  return date;
}
