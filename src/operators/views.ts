import type { MessageInitShape } from "@bufbuild/protobuf";
import { OperatorEventSchema, OperatorSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { viewOf } from "../api/view.ts";
import type { EventRow } from "./operator-log.ts";
import type { OperatorRow } from "./store.ts";

export function viewOperator(row: OperatorRow): MessageInitShape<typeof OperatorSchema> {
  return viewOf(OperatorSchema, row, {});
}

export function viewOperatorEvent(
  row: EventRow,
  names: ReadonlyMap<string, string>,
): MessageInitShape<typeof OperatorEventSchema> {
  return viewOf(OperatorEventSchema, row, {
    id: `evt_${row.lane}_${row.seq}`,
    accountName: names.get(row.account_id) ?? "",
    targetName: row.target === row.account_id ? "" : (names.get(row.target) ?? ""),
  });
}
