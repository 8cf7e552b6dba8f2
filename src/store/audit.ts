import { LANE_COUNT } from "../domain/lane.ts";
import type { Database } from "./database.ts";

export type AuditFinding = { account_id: string; rule: string; detail: string };

export type AuditReport = {
  accounts: bigint;
  entries: bigint;
  keys: bigint;
  balanceMicros: bigint;
  findings: AuditFinding[];
};

const MAX_FINDINGS = 1_000;

type AuditRow = AuditFinding & { accounts: bigint; entries: bigint; keys: bigint; balance_micros: string };

/** Recomputes lane by lane, so that no single statement runs for long. */
export async function audit(database: Database): Promise<AuditReport> {
  const report: AuditReport = { accounts: 0n, entries: 0n, keys: 0n, balanceMicros: 0n, findings: [] };
  for (let lane = 0; lane < LANE_COUNT; lane++) {
    for (const row of await database.call<AuditRow>("audit", lane)) {
      report.accounts += row.accounts;
      report.entries += row.entries;
      report.keys += row.keys;
      report.balanceMicros += BigInt(row.balance_micros);
      if (row.rule !== "" && report.findings.length < MAX_FINDINGS) {
        report.findings.push({ account_id: row.account_id, rule: row.rule, detail: row.detail });
      }
    }
  }
  return report;
}
