import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import type { LimitOwner, LimitRow } from "./store.ts";

export function viewLimit(row: LimitRow, owner: LimitOwner): MessageInitShape<typeof LimitSchema> {
  const ofPlan = owner.kind === "plan" || row.owner_id !== row.subject_id;
  return {
    id: row.id,
    metric: row.metric,
    window: row.period,
    amount: row.amount,
    model: row.model,
    per: row.per_user ? "user" : "",
    ...(row.temporary_amount === null ? {} : { temporaryAmount: row.temporary_amount }),
    ...(row.temporary_until ? { temporaryUntil: timestampFromDate(row.temporary_until) } : {}),
    owner: ofPlan ? "plan" : row.owner_id.startsWith("acct_") ? "account" : "key",
    ownerId: row.owner_id,
    spent: row.spent,
    held: row.held,
    remaining: row.valid_amount > row.spent + row.held ? row.valid_amount - row.spent - row.held : 0n,
    ...(row.resets_at ? { resetsAt: timestampFromDate(row.resets_at) } : {}),
    ...(row.counted_since ? { countedSince: timestampFromDate(row.counted_since) } : {}),
    setByOperator: row.is_of_operator,
  };
}
