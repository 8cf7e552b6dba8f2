import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AccountSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import type { GrantSchema } from "../../gen/vx/v1/account_pb.js";
import { formatMicros } from "../domain/money.ts";
import type { AccountRow, GrantRow } from "./store.ts";

export function viewAccount(row: AccountRow, grants: readonly GrantRow[] = []): MessageInitShape<typeof AccountSchema> {
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    balanceMicros: row.balance_micros,
    balance: formatMicros(row.balance_micros),
    heldMicros: row.held_micros,
    owedMicros: row.owed_micros,
    spentTodayMicros: row.day_micros,
    spentMonthMicros: row.month_micros,
    createdAt: timestampFromDate(row.created_at),
    externalId: row.external_id,
    email: row.email,
    notes: row.notes,
    state: accountStateOf(row),
    ...(row.low_balance_micros === null ? {} : { lowBalanceMicros: row.low_balance_micros }),
    ...(row.suspended_at ? { suspendedAt: timestampFromDate(row.suspended_at) } : {}),
    ...(row.closed_at ? { closedAt: timestampFromDate(row.closed_at) } : {}),
    grants: grants.map(viewGrant),
  };
}

export function viewGrant(row: GrantRow): MessageInitShape<typeof GrantSchema> {
  return {
    id: row.entry_id,
    amountMicros: row.amount_micros,
    remainingMicros: row.rest_micros,
    promotional: row.is_promotional,
    ...(row.expires_at ? { expiresAt: timestampFromDate(row.expires_at) } : {}),
  };
}

export function accountStateOf({ suspended_at, closed_at }: Pick<AccountRow, "suspended_at" | "closed_at">) {
  if (closed_at) return "closed";
  return suspended_at ? "suspended" : "active";
}
