import { laneOfId } from "../domain/lane.ts";
import { getAccount } from "../store/accounts.ts";
import { type Movement, moveBalance as moveBalanceRow } from "../store/ledger.ts";
import type { ApiCall } from "./api-call.ts";
import type { Deps } from "./deps.ts";
import { makeLoggedChange } from "./operator-action.ts";
import { viewAccount, viewEntry } from "./views.ts";

/** Changes a balance for an operator, once per idempotency key. */
export async function moveBalance(
  deps: Deps,
  call: ApiCall,
  kind: Movement["kind"],
  request: Pick<Movement, "accountId" | "amountMicros" | "reason" | "idempotencyKey">,
) {
  const { accountId, amountMicros, reason, idempotencyKey } = request;
  const movement = {
    entryId: deps.ids.entry(laneOfId(accountId)),
    accountId,
    kind,
    amountMicros,
    reason,
    idempotencyKey,
  };
  const details = { entry_id: movement.entryId, amount_micros: amountMicros };
  const entry = await makeLoggedChange(deps, call, { target: accountId, reason, details }, (action) =>
    moveBalanceRow(deps.database, action, movement),
  );
  return { account: viewAccount(await getAccount(deps.database, accountId)), entry: viewEntry(entry) };
}
