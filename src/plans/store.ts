import * as sql from "../../gen/sql/calls.ts";
import type { Action } from "../database/action.ts";
import { namedCell } from "../database/cells/named-cell.ts";
import type { Cells } from "../database/driver/cells.ts";

export type PlanRow = sql.Plans;

/** The limit on created keys is optional because it has a default. */
type PlanToPut = Omit<PlanRow, "max_keys_created_per_hour"> & {
  max_keys_created_per_hour: number | undefined;
};

export function listPlans(database: Cells): Promise<PlanRow[]> {
  return sql.listPlans(database.home);
}

export type PlanCounts = { readonly accounts: bigint; readonly activeKeys: bigint };

/** The accounts that are not closed and the active keys of each plan. */
export async function countPlans(database: Cells): Promise<ReadonlyMap<string, PlanCounts>> {
  const rows = await Promise.all(database.all.map((_, i) => sql.countPlans(namedCell(database, i))));
  const counts = new Map<string, PlanCounts>();
  for (const { plan, accounts, keys } of rows.flat()) {
    const before = counts.get(plan) ?? { accounts: 0n, activeKeys: 0n };
    counts.set(plan, { accounts: before.accounts + accounts, activeKeys: before.activeKeys + keys });
  }
  return counts;
}

export async function putPlan(database: Cells, action: Action, plan: PlanToPut): Promise<PlanRow> {
  const [row] = await sql.putPlan(database, action, {
    name: plan.name,
    rpm: plan.rpm,
    maxActiveKeys: plan.max_active_keys,
    maxKeysCreatedPerHour: plan.max_keys_created_per_hour,
  });
  await database.share();
  return row as PlanRow;
}
