import { AccountService, type GetAccountRequest } from "../../gen/vx/v1/account_pb.js";
import { formatMicros } from "../domain/money.ts";
import { getAccount as getAccountRow } from "../store/accounts.ts";
import { getKey } from "../store/keys.ts";
import { type ApiCall, type Deps, defineService } from "./define-service.ts";
import { accountStateOf, viewKey } from "./views.ts";

export async function getAccount(
  { database, topUpUrl }: Pick<Deps, "database" | "topUpUrl">,
  _request: GetAccountRequest,
  { key: { accountId, keyId } }: ApiCall,
) {
  const [account, key] = await Promise.all([
    getAccountRow(database, accountId),
    getKey(database, accountId, keyId),
  ]);
  const { balance_micros: balanceMicros, held_micros: heldMicros } = account;
  const availableMicros = balanceMicros - heldMicros;
  return {
    id: account.id,
    name: account.name,
    state: accountStateOf(account),
    balanceMicros,
    balance: formatMicros(balanceMicros),
    heldMicros,
    held: formatMicros(heldMicros),
    availableMicros,
    available: formatMicros(availableMicros),
    plan: account.plan,
    key: viewKey(key),
    topUpUrl: topUpUrl ?? "",
  };
}

export const accountService = defineService(AccountService, ({ deps }) => ({
  getAccount: (request, call) => getAccount(deps, request, call),
}));
