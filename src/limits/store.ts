import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import type { Ids } from "../domain/ids.ts";
import { LANE_COUNT, type Lane, laneOfId } from "../domain/lane.ts";
import type { LimitToSet } from "../domain/limit.ts";

/** Whose calls limits apply to: those of an account or a key, by its id, or those of each key of a plan, by its name. */
export type LimitOwner = { readonly kind: "account" | "key" | "plan"; readonly id: string };

export type LimitRow = sql.LimitView;

/** Sets one limit of an owner: a limit of the same metric, window, model and users gets the new amount. */
export async function setLimit(
  database: Cells,
  action: Action,
  owner: LimitOwner,
  limit: LimitToSet,
  ids: Pick<Ids, "limit">,
): Promise<LimitRow> {
  const lane = laneOfOwner(owner);
  const json = JSON.stringify(newLimitOf(limit, lane, ids));
  const [row] = await sql.putLimit(database, action, { lane, ownerId: owner.id, limit: json });
  if (owner.kind === "plan") await database.share();
  return row as LimitRow;
}

export async function removeLimit(database: Cells, action: Action, owner: LimitOwner, id: string): Promise<void> {
  await sql.deleteLimit(database, action, { lane: laneOfOwner(owner), ownerId: owner.id, id });
  if (owner.kind === "plan") await database.share();
}

/** The limits that apply to the calls of a key, or those of an account or a plan, with what is counted for the user. */
export async function listLimits(database: Cells, owner: LimitOwner, user = ""): Promise<LimitRow[]> {
  const lane = laneOfOwner(owner);
  return await sql.viewLimits(database.at(lane), { lane, ownerId: owner.id, user });
}

/** An element of the parameter p_limits of vx.set_limits, with the id that the limit gets if it is new. */
export function newLimitOf(
  { metric, window, amount, model, perUser, temporary }: LimitToSet,
  lane: Lane,
  ids: Pick<Ids, "limit">,
) {
  return {
    id: ids.limit(lane),
    metric,
    period: window,
    amount: String(amount),
    model,
    per_user: perUser,
    temporary_amount: temporary && String(temporary.amount),
    temporary_until: temporary?.until,
  };
}

export type NewLimit = ReturnType<typeof newLimitOf>;

/** The limits in the column of a key, which is JSON. */
export function limitsOfKey(json: string | null): LimitRow[] {
  const bigintOf = (value: unknown) => (value === null ? null : BigInt(value as number));
  const dateOf = (value: unknown) => (value === null ? null : new Date(value as string));
  const rows = JSON.parse(json ?? "[]") as Record<keyof LimitRow, unknown>[];
  return rows.map((row) => ({
    ...(row as LimitRow),
    amount: bigintOf(row.amount) as bigint,
    temporary_amount: bigintOf(row.temporary_amount),
    temporary_until: dateOf(row.temporary_until),
    valid_amount: bigintOf(row.valid_amount) as bigint,
    spent: bigintOf(row.spent) as bigint,
    held: bigintOf(row.held) as bigint,
    resets_at: dateOf(row.resets_at),
    counted_since: dateOf(row.counted_since),
  }));
}

/** Plans belong to no lane. */
function laneOfOwner({ kind, id }: LimitOwner): Lane {
  return kind === "plan" ? LANE_COUNT : laneOfId(id);
}
