import type { MessageInitShape } from "@bufbuild/protobuf";
import { LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import { viewOf } from "../api/view.ts";
import type { LimitOwner, LimitRow } from "./store.ts";

export function viewLimit(row: LimitRow, owner: LimitOwner): MessageInitShape<typeof LimitSchema> {
  const ofPlan = owner.kind === "plan" || row.owner_id !== row.subject_id;
  return viewOf(LimitSchema, row, {
    window: row.period,
    per: row.per_user ? "user" : "",
    owner: ofPlan ? "plan" : row.owner_id.startsWith("acct_") ? "account" : "key",
    remaining: row.valid_amount > row.spent + row.held ? row.valid_amount - row.spent - row.held : 0n,
    setByOperator: row.is_of_operator,
  });
}
