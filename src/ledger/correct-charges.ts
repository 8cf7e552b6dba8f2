import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { RefundEntryRequest, RerateRequest, RerateResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { namedCell } from "../database/cells/named-cell.ts";
import { DomainError } from "../domain/errors.ts";
import { unknownModel } from "../generations/refusals.ts";
import { actionOf, makeLoggedChange } from "../operators/operator-action.ts";
import { pricesOf } from "../prices/admin.ts";
import { refundEntry as refundEntryRow, rerate as rerateAccounts } from "./corrections.ts";
import { archivedUntil } from "./store.ts";
import { viewEntry } from "./views.ts";

/** Each account that changes has an event in the operator log, written with its adjustments. */
export async function* rerate(
  deps: Deps,
  request: RerateRequest,
  call: ApiCall,
): AsyncGenerator<MessageInitShape<typeof RerateResponseSchema>, void> {
  const { database, catalog } = deps;
  const { reason, apply } = request;
  const model = catalog.get(request.model)?.id;
  if (model === undefined) throw unknownModel(request.model, catalog.list());
  if (!request.from || !request.to || !request.prices) throw DomainError.ofField("prices", "is missing");
  const [from, to] = [timestampDate(request.from), timestampDate(request.to)];
  if (from >= to) throw DomainError.ofField("from", 'must be before "to"');
  for (const i of database.all.keys()) {
    const until = await archivedUntil(namedCell(database, i));
    if (until !== undefined && from < until)
      throw DomainError.ofField("from", `entries before ${until.toISOString()} are archived; begin there`);
  }
  const rerating = { model, from, to, prices: pricesOf(request.prices), reason, apply };
  const details = { model, from: from.toISOString(), to: to.toISOString() };
  const action = actionOf(call.actor, call.methodName, call.requestId, { reason, details });
  if (apply) call.recordChange(model, undefined);
  const check = async () => {
    call.signal.throwIfAborted();
    await call.recheck();
  };
  for await (const row of rerateAccounts(database, action, rerating, check)) {
    yield {
      accountId: row.account_id,
      accountName: row.account_name,
      adjusted: row.adjusted,
      creditMicros: row.credit_micros,
      debitMicros: row.debit_micros,
      refused: row.refused,
      refusedMicros: row.refused_micros,
      skipped: row.skipped,
    };
  }
}

export async function refundEntry(deps: Deps, request: RefundEntryRequest, call: ApiCall) {
  const { accountId, entryId: id, amountMicros, reason, idempotencyKey } = request;
  const details = { entry_id: id, amount_micros: amountMicros };
  const row = await makeLoggedChange(deps, call, { target: accountId, reason, details }, (action) =>
    refundEntryRow(deps.database, action, { accountId, id, amountMicros, reason, idempotencyKey }),
  );
  return { entry: viewEntry(row) };
}
