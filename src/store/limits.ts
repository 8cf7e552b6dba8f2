import type { Ids } from "../domain/ids.ts";
import { LANE_COUNT, type Lane, laneOfId } from "../domain/lane.ts";
import type { LimitMetric, LimitToSet, LimitWindow } from "../domain/limit.ts";
import type { Cells } from "./driver/cells.ts";
import { actionJson, type OperatorAction } from "./operator-log.ts";

/** Whose calls limits apply to: those of an account or a key, by its id, or those of each key of a plan, by its name. */
export type LimitOwner = { readonly kind: "account" | "key" | "plan"; readonly id: string };

export type LimitRow = {
  id: string;
  owner_id: string;
  /** The account or key whose calls are counted; the name of the plan if none is. */
  subject_id: string;
  /** Also "requests" and "active_keys" of a key. */
  metric: LimitMetric | "requests" | "active_keys";
  period: LimitWindow;
  amount: bigint;
  model: string;
  per_user: boolean;
  temporary_amount: bigint | null;
  temporary_until: Date | null;
  /** The amount that is valid now. */
  valid_amount: bigint;
  spent: bigint;
  held: bigint;
  resets_at: Date | null;
  counted_since: Date | null;
};

/** Sets one limit of an owner: a limit of the same metric, window, model and users gets the new amount. */
export async function setLimit(
  database: Cells,
  action: OperatorAction,
  owner: LimitOwner,
  limit: LimitToSet,
  ids: Pick<Ids, "limit">,
): Promise<LimitRow> {
  const lane = laneOfOwner(owner);
  const [json] = JSON.parse(limitsJson([limit], lane, ids)) as unknown[];
  const [row] = await database
    .at(lane)
    .call<LimitRow>("put_limit", actionJson(action), lane, owner.id, JSON.stringify(json));
  if (owner.kind === "plan") await database.share();
  return row as LimitRow;
}

export async function removeLimit(
  database: Cells,
  action: OperatorAction,
  owner: LimitOwner,
  id: string,
): Promise<void> {
  const lane = laneOfOwner(owner);
  await database.at(lane).call("delete_limit", actionJson(action), lane, owner.id, id);
  if (owner.kind === "plan") await database.share();
}

/** The limits that apply to the calls of a key, or those of an account or a plan, with what is counted for the user. */
export async function listLimits(database: Cells, owner: LimitOwner, user = ""): Promise<LimitRow[]> {
  const lane = laneOfOwner(owner);
  return await database.at(lane).call<LimitRow>("view_limits", lane, owner.id, user);
}

/** The parameter p_limits of vx.set_limits. Each limit has the id that it gets if it is new. */
export function limitsJson(limits: readonly LimitToSet[], lane: Lane, ids: Pick<Ids, "limit">): string {
  return JSON.stringify(
    limits.map(({ metric, window, amount, model, perUser, temporary }) => ({
      id: ids.limit(lane),
      metric,
      period: window,
      amount: String(amount),
      model,
      per_user: perUser,
      temporary_amount: temporary && String(temporary.amount),
      temporary_until: temporary?.until,
    })),
  );
}

/** Plans belong to no lane. */
function laneOfOwner({ kind, id }: LimitOwner): Lane {
  return kind === "plan" ? LANE_COUNT : laneOfId(id);
}
