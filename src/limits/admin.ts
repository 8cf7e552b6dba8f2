import type {
  ListLimitsRequest as ListLimitsOfOwnerRequest,
  RemoveLimitRequest,
  SetLimitRequest,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { accountIdToChange, accountIdToRead } from "../accounts/named-account.ts";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import type { Change } from "../operators/operator-action.ts";
import { limitChangeOf, limitToSet, removeLimitOf, setLimitOf } from "./changes.ts";
import { type LimitOwner, listLimits as listLimitRows } from "./store.ts";
import { viewLimit } from "./views.ts";

export async function listLimitsOfOwner(deps: Deps, { owner: of, user }: ListLimitsOfOwnerRequest, call: ApiCall) {
  const named = ownerOf(of);
  const id = named.kind === "account" ? await accountIdToRead(deps, call, named.id) : named.id;
  const owner = { ...named, id };
  const rows = await listLimitRows(deps.database, owner, user);
  if (rows.length === 0 && owner.kind === "key")
    throw new DomainError("not_found", { message: `There is no key "${owner.id}".` });
  return { limits: rows.map((row) => viewLimit(row, owner)) };
}

export async function setLimit(deps: Deps, { owner: of, limit, reason }: SetLimitRequest, call: ApiCall) {
  const named = ownerOf(of);
  const toSet = limitToSet(deps, limit, "limit");
  const owner = await changed(deps, call, named, { reason, details: limitChangeOf(toSet) });
  return await setLimitOf(deps, owner, toSet, call, reason);
}

export async function removeLimit(deps: Deps, { owner: of, limitId, reason }: RemoveLimitRequest, call: ApiCall) {
  const owner = await changed(deps, call, ownerOf(of), { reason, details: { limit_id: limitId } });
  return await removeLimitOf(deps, owner, limitId, call, reason);
}

/** The owner of a change, with the id of an account. */
async function changed(deps: Deps, call: ApiCall, owner: LimitOwner, change: Omit<Change, "target">): Promise<LimitOwner> {
  if (owner.kind !== "account") return owner;
  return { ...owner, id: await accountIdToChange(deps, call, owner.id, change) };
}

const KINDS = { plan: "plan", accountId: "account", keyId: "key" } as const;

function ownerOf(owner: SetLimitRequest["owner"]): LimitOwner {
  if (owner.case === undefined) throw DomainError.ofField("owner", "must be a plan, an account or a key");
  return { kind: KINDS[owner.case], id: owner.value };
}
