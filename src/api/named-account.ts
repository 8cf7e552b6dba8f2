import { accountIdOf } from "../store/accounts.ts";
import type { ApiCall } from "./api-call.ts";
import type { Deps } from "./deps.ts";
import { makeLoggedChange } from "./operator-action.ts";

type ChangeOfAccount = { readonly accountId: string; readonly reason: string };

/** Replaces the account reference of a change by the account's id. A change of an unknown account is logged as refused. */
export async function withAccountId<Request extends ChangeOfAccount>(
  deps: Deps,
  request: Request,
  call: ApiCall,
): Promise<Request> {
  const { accountId: target, reason } = request;
  const accountId = await makeLoggedChange(deps, call, { target, reason }, () =>
    accountIdOf(deps.database, target),
  );
  return { ...request, accountId };
}
