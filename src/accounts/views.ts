import type { MessageInitShape } from "@bufbuild/protobuf";
import { AccountSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { GrantSchema } from "../../gen/vx/v1/account_pb.js";
import { viewOf } from "../api/view.ts";
import type { AccountRow, GrantRow } from "./store.ts";

export function viewAccount(row: AccountRow, grants: readonly GrantRow[] = []): MessageInitShape<typeof AccountSchema> {
  return viewOf(AccountSchema, row, {
    spentTodayMicros: row.day_micros,
    spentMonthMicros: row.month_micros,
    state: accountStateOf(row),
    grants: grants.map(viewGrant),
  });
}

export function viewGrant(row: GrantRow): MessageInitShape<typeof GrantSchema> {
  const { entry_id: id, rest_micros: remainingMicros, is_promotional: promotional } = row;
  return viewOf(GrantSchema, row, { id, remainingMicros, promotional });
}

export function accountStateOf({ suspended_at, closed_at }: Pick<AccountRow, "suspended_at" | "closed_at">) {
  if (closed_at) return "closed";
  return suspended_at ? "suspended" : "active";
}
