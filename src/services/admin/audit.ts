import { audit as auditRows } from "../../store/audit.ts";
import type { Deps } from "../deps.ts";

export async function audit(deps: Deps) {
  const { findings, ...totals } = await auditRows(deps.database);
  return {
    ...totals,
    consistent: findings.length === 0,
    findings: findings.map(({ account_id, rule, detail }) => ({ accountId: account_id, rule, detail })),
  };
}
