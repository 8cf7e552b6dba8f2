import type { AuditResponse } from "../../gen/vx/admin/v1/admin_pb.js";
import { formatMicros } from "../domain/money.ts";
import type { AuditProgress } from "../store/audit.ts";
import { findingColumns } from "./columns.ts";
import { CommandFailure } from "./failure.ts";
import { type Column, formatTable } from "./print.ts";
import type { Progress } from "./progress.ts";

const totalColumns: readonly Column<AuditResponse>[] = [
  { title: "ACCOUNTS", value: (totals) => String(totals.accounts), align: "right" },
  { title: "ENTRIES", value: (totals) => String(totals.entries), align: "right" },
  { title: "KEYS", value: (totals) => String(totals.keys), align: "right" },
  { title: "BALANCE", value: (totals) => formatMicros(totals.balanceMicros), align: "right" },
  { title: "OPERATOR EVENTS", value: (totals) => String(totals.operatorEvents), align: "right" },
  { title: "CONSISTENT", value: (totals) => (totals.consistent ? "yes" : "NO") },
];

export function requireConsistent(response: AuditResponse): void {
  if (!response.consistent) {
    throw new CommandFailure(
      "the stored values differ from the ledger entries or from the log; see the findings",
    );
  }
}

export function auditText(response: AuditResponse): string {
  const { findings } = response;
  const details = findings.length === 0 ? "" : `\n${formatTable(findingColumns, findings)}`;
  return formatTable(totalColumns, [response]) + details;
}

export function showAudit(progress: Progress, { partsDone, parts, entries }: AuditProgress): void {
  progress.show(partsDone / parts, `${entries} ledger entries audited`);
}
