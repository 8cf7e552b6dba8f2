import type { Call } from "../../gate/call.ts";
import { audit as auditRows } from "../../store/audit.ts";
import type { Deps } from "../deps.ts";

export async function audit(deps: Deps, call: Call) {
  const { findings, ...totals } = await auditRows(deps.database, call.signal);
  return {
    ...totals,
    consistent: findings.length === 0,
    findings: findings.map(({ account_id, rule, detail }) => ({ accountId: account_id, rule, detail })),
  };
}
