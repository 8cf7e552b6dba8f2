import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AuditRequest, AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import type { WatchAuditRequest, WatchAuditResponseSchema } from "../../gen/vx/admin/v1/console_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { type AuditReport, auditInSteps, audit as auditRows } from "./store.ts";

export async function audit({ database, onAudit }: Deps, _request: AuditRequest, call: ApiCall) {
  const report = await auditRows(database, call.signal);
  await onAudit(report);
  return viewReport(report);
}

/** Audits and exports read whole tables. */
export const MAX_LONG_READS = 4;

export async function* watchAudit(
  { database, onAudit }: Deps,
  _request: WatchAuditRequest,
  call: ApiCall,
): AsyncGenerator<MessageInitShape<typeof WatchAuditResponseSchema>, void> {
  const steps = auditInSteps(database, call.signal);
  for (;;) {
    const step = await steps.next();
    await call.recheck();
    if (!step.done) {
      yield step.value;
      continue;
    }
    const { parts, report } = step.value;
    await onAudit(report);
    yield { partsDone: parts, parts, entries: report.entries, result: viewReport(report) };
    return;
  }
}

export function viewReport({ findings, startedAt: _, ...totals }: AuditReport): MessageInitShape<typeof AuditResponseSchema> {
  return {
    ...totals,
    consistent: findings.length === 0,
    findings: findings.map(({ account_id, rule, detail }) => ({ accountId: account_id, rule, detail })),
  };
}

/** Limits how many of these streams a server runs at a time; further ones are refused as overloaded. */
export function limitStreams<Parameters extends readonly unknown[], Message>(
  max: number,
  open: (...parameters: Parameters) => AsyncGenerator<Message, void>,
): (...parameters: Parameters) => AsyncGenerator<Message, void> {
  let running = 0;
  return async function* (...parameters) {
    if (running >= max) {
      throw new DomainError("overloaded", {
        message: `This server runs ${max} of these calls at a time. Try again later.`,
      });
    }
    running++;
    try {
      yield* open(...parameters);
    } finally {
      running--;
    }
  };
}
