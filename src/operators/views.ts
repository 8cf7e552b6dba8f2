import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { OperatorEventSchema, OperatorSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import type { EventRow } from "./operator-log.ts";
import type { OperatorRow } from "./store.ts";

export function viewOperator(row: OperatorRow): MessageInitShape<typeof OperatorSchema> {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    state: row.state,
    createdAt: timestampFromDate(row.created_at),
    ...(row.revoked_at ? { revokedAt: timestampFromDate(row.revoked_at) } : {}),
    ...(row.last_used_at ? { lastUsedAt: timestampFromDate(row.last_used_at) } : {}),
    email: row.email,
    identityBound: row.identity_bound,
  };
}

export function viewOperatorEvent(
  row: EventRow,
  names: ReadonlyMap<string, string>,
): MessageInitShape<typeof OperatorEventSchema> {
  return {
    id: `evt_${row.lane}_${row.seq}`,
    createdAt: timestampFromDate(row.created_at),
    actorId: row.actor_id,
    actorName: row.actor_name,
    method: row.method,
    target: row.target,
    accountId: row.account_id,
    reason: row.reason,
    outcome: row.outcome,
    details: row.details,
    requestId: row.request_id,
    accountName: names.get(row.account_id) ?? "",
    targetName: row.target === row.account_id ? "" : (names.get(row.target) ?? ""),
  };
}
