import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import type { WatchAuditResponseSchema } from "../../gen/vx/admin/v1/console_pb.js";
import { DomainError } from "../domain/errors.ts";
import { type AuditReport, auditInSteps, audit as auditRows } from "../store/audit.ts";
import type { ApiCall } from "./api-call.ts";
import type { Deps } from "./deps.ts";

export async function audit({ database, onAudit }: Deps, call: ApiCall) {
  const report = await auditRows(database, call.signal);
  onAudit(report.findings.length);
  return viewReport(report);
}

/** An audit reads the whole ledger. */
const MAX_WATCHED_AUDITS = 4;

/** Limits the streams of audits that run at a time. */
export function auditWatcher({ database, onAudit }: Deps) {
  let running = 0;
  return async function* watchAudit(
    call: ApiCall,
  ): AsyncGenerator<MessageInitShape<typeof WatchAuditResponseSchema>, void> {
    if (running >= MAX_WATCHED_AUDITS) throw new DomainError("overloaded");
    running++;
    try {
      const steps = auditInSteps(database, call.signal);
      for (;;) {
        const step = await steps.next();
        await call.recheckOperator();
        if (!step.done) {
          yield step.value;
          continue;
        }
        const { parts, report } = step.value;
        onAudit(report.findings.length);
        yield { partsDone: parts, parts, entries: report.entries, result: viewReport(report) };
        return;
      }
    } finally {
      running--;
    }
  };
}

export function viewReport({
  findings,
  ...totals
}: AuditReport): MessageInitShape<typeof AuditResponseSchema> {
  return {
    ...totals,
    consistent: findings.length === 0,
    findings: findings.map(({ account_id, rule, detail }) => ({ accountId: account_id, rule, detail })),
  };
}
