import type { Database } from "./database.ts";

export type PlanRow = { name: string; rpm: number; max_active_keys: number };

export function listPlans(database: Database): Promise<PlanRow[]> {
  return database.call<PlanRow>("list_plans");
}

export async function putPlan(database: Database, plan: PlanRow): Promise<PlanRow> {
  const [row] = await database.call<PlanRow>("put_plan", plan.name, plan.rpm, plan.max_active_keys);
  return row as PlanRow;
}
