import type { ApiCall, Deps } from "../api/define-service.ts";
import { isAccountId } from "../domain/ids.ts";
import { type Change, makeLoggedChange, type WithReason } from "../operators/operator-action.ts";
import { type AccountRow, accountIdOf, findAccount } from "./store.ts";

type Named = Pick<Deps, "database">;
type NamingCall = Pick<ApiCall, "nameAccount">;

/** The account of a method that changes nothing, by its id, its external id or its name. A name can change, so the response says which account it is. */
export async function accountToRead({ database }: Named, call: NamingCall, reference: string): Promise<AccountRow> {
  const account = await findAccount(database, reference);
  if (account.id !== reference && account.external_id !== reference) call.nameAccount(account.id);
  return account;
}

/** The id of the same account. An id is returned without a look-up, and an empty reference too: it means all accounts. */
export async function accountIdToRead(deps: Named, call: NamingCall, reference: string): Promise<string> {
  if (reference === "" || isAccountId(reference)) return reference;
  return (await accountToRead(deps, call, reference)).id;
}

/** The id of the account of a change, by its id or its external id. A change of an unknown account is logged as refused. */
export function accountIdToChange(deps: Deps, call: ApiCall, reference: string, change: Omit<Change, "target">): Promise<string> {
  return makeLoggedChange(deps, call, { target: reference, ...change }, () => accountIdOf(deps.database, reference));
}

type ChangeOfAccount = WithReason & { readonly accountId: string };

/** Replaces the account reference of a change by the account's id. */
export function ofAccount<Request extends ChangeOfAccount, Response>(
  change: (deps: Deps, request: Request, call: ApiCall) => Promise<Response>,
) {
  return async (deps: Deps, request: Request, call: ApiCall): Promise<Response> => {
    const { reason } = request;
    const accountId = await accountIdToChange(deps, call, request.accountId, { reason });
    return await change(deps, { ...request, accountId }, call);
  };
}
