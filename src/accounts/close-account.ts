import type { CloseAccountRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import type { Action } from "../database/action.ts";
import { DomainError } from "../domain/errors.ts";
import { viewEntry } from "../ledger/views.ts";
import { listMembers, unlinkPerson } from "../members/store.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { ProviderError } from "../payments/provider.ts";
import { closingOf, stepOfClosing } from "./closing.ts";
import { getAccount } from "./store.ts";
import { viewAccount } from "./views.ts";

/** A step locks the lane of the account for less than a tenth of a second. */
const ROWS_PER_STEP = 2_000;
/** A call ends before the client gives up; the next one continues. */
const STEPS_PER_CALL = 100;

/** Closes an account as far as it is possible now. A repetition continues, after a failure too. */
export async function closeAccount(deps: Deps, request: CloseAccountRequest, call: ApiCall) {
  const { accountId, reason, balance, dryRun } = request;
  const before = await closingOf(deps.database, accountId);
  const change = { target: accountId, reason, details: { balance } };
  const { closed, entry } = dryRun
    ? { closed: false, entry: undefined }
    : await makeLoggedChange(deps, call, change, (action) =>
        closeInSteps(deps, action, request, before.pending_topups.split(",").filter(Boolean)),
      );
  return {
    account: viewAccount(await getAccount(deps.database, accountId)),
    closed,
    ...(entry && { entry: viewEntry(entry) }),
    activeKeys: Number(before.active_keys),
    webhooks: Number(before.webhooks),
    pendingTopups: before.pending_topups.split(",").filter(Boolean).length,
    paymentMethod: before.payment_method,
  };
}

async function closeInSteps(
  { database, topUps }: Pick<Deps, "database" | "topUps">,
  action: Action,
  { accountId, reason, balance }: CloseAccountRequest,
  topUpIds: readonly string[],
) {
  let isEndedElsewhere = false;
  let customerId: string | undefined;
  for (let i = 0; i < STEPS_PER_CALL; i++) {
    const step = { reason, balance, isEndedElsewhere, customerId, isLogged: i === 0, rows: ROWS_PER_STEP };
    const { status, entry } = await stepOfClosing(database, action, accountId, step);
    if (status === "closed") {
      // A call that ran meanwhile may have created another customer.
      await topUps?.automatic.forget(accountId).catch(explainFailure);
      return { closed: true, entry };
    }
    if (status === "running") break;
    if (status === "elsewhere") {
      customerId = await topUps?.end(accountId, topUpIds).catch(explainFailure);
      // Before the members are deleted, so that a repetition finds them.
      for (const { person_id: personId, link_id: linkId } of await listMembers(database, accountId))
        await unlinkPerson(database, { personId, accountId, linkId }, true);
      isEndedElsewhere = true;
    }
  }
  return { closed: false, entry: undefined };
}

function explainFailure(error: unknown): never {
  if (!(error instanceof ProviderError)) throw error;
  throw new DomainError("unavailable", {
    message:
      "The keys of the account are revoked, but the payment provider did not delete its payment method. Repeat the call later.",
    cause: error,
  });
}
