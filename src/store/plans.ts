import { LANE_COUNT } from "../domain/lane.ts";
import { type Action, change } from "./action.ts";
import type { Cells } from "./driver/cells.ts";
import { namedCell } from "./named-cell.ts";

export type PlanRow = {
  name: string;
  rpm: number;
  max_active_keys: number;
  max_keys_created_per_hour: number;
};

/** The limit on created keys is optional because it has a default. */
type PlanToPut = Omit<PlanRow, "max_keys_created_per_hour"> & {
  max_keys_created_per_hour: number | undefined;
};

export function listPlans(database: Cells): Promise<PlanRow[]> {
  return database.home.call<PlanRow>("list_plans");
}

export type PlanCounts = { readonly accounts: bigint; readonly activeKeys: bigint };

/** The accounts that are not closed and the active keys of each plan. */
export async function countPlans(database: Cells): Promise<ReadonlyMap<string, PlanCounts>> {
  type Row = { plan: string; accounts: bigint; keys: bigint };
  const rows = await Promise.all(database.all.map((_, i) => namedCell(database, i).call<Row>("count_plans")));
  const counts = new Map<string, PlanCounts>();
  for (const { plan, accounts, keys } of rows.flat()) {
    const before = counts.get(plan) ?? { accounts: 0n, activeKeys: 0n };
    counts.set(plan, { accounts: before.accounts + accounts, activeKeys: before.activeKeys + keys });
  }
  return counts;
}

export async function putPlan(database: Cells, action: Action, plan: PlanToPut): Promise<PlanRow> {
  const [row] = await change<PlanRow>(
    database,
    LANE_COUNT,
    action,
    "put_plan",
    plan.name,
    plan.rpm,
    plan.max_active_keys,
    plan.max_keys_created_per_hour ?? null,
  );
  await database.share();
  return row as PlanRow;
}
