import type { Cells } from "./driver/cells.ts";
import { actionJson, type OperatorAction } from "./operator-log.ts";

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

export async function putPlan(database: Cells, action: OperatorAction, plan: PlanToPut): Promise<PlanRow> {
  const [row] = await database.home.call<PlanRow>(
    "put_plan",
    actionJson(action),
    plan.name,
    plan.rpm,
    plan.max_active_keys,
    plan.max_keys_created_per_hour ?? null,
  );
  await database.share();
  return row as PlanRow;
}
