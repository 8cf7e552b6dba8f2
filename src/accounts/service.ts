import type { MessageInitShape } from "@bufbuild/protobuf";
import { AccountService, type GetAccountResponseSchema } from "../../gen/vx/v1/account_pb.js";
import { type ApiCall, type Deps, defineService } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { formatMicros } from "../domain/money.ts";
import { viewKey } from "../keys/fields.ts";
import { getKey, type KeyRow } from "../keys/store.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { type AccountRow, getAccount, readGrants, updateAccount } from "./store.ts";
import { accountStateOf, viewGrant } from "./views.ts";

export const accountService = defineService(AccountService, {
  getAccount: async (deps, _request, call) => {
    return await viewOwnAccount(deps, call, getAccount(deps.database, call.key.accountId));
  },
  updateAccount: (deps, { lowBalanceMicros, updateMask }, call) => {
    const { accountId } = call.key;
    const change = { target: accountId, details: { low_balance_micros: lowBalanceMicros ?? "none" } };
    return makeLoggedChange(deps, call, change, async (action) => {
      const paths = updateMask?.paths ?? [];
      if (paths.some((path) => path !== "low_balance_micros"))
        throw DomainError.ofField("update_mask", "must have only this field: low_balance_micros");
      const isChanged = updateMask ? paths.length > 0 : lowBalanceMicros !== undefined;
      const account = isChanged
        ? updateAccount(deps.database, action, accountId, { low_balance_micros: lowBalanceMicros ?? null })
        : getAccount(deps.database, accountId);
      return { account: await viewOwnAccount(deps, call, account) };
    });
  },
});

/** A member has none. */
async function keyOf(database: Deps["database"], { actor, key }: ApiCall): Promise<KeyRow | undefined> {
  return actor.kind === "member" ? undefined : await getKey(database, key.accountId, key.keyId);
}

async function viewOwnAccount(
  { database, topUpUrl }: Pick<Deps, "database" | "topUpUrl">,
  call: ApiCall,
  reading: Promise<AccountRow>,
): Promise<MessageInitShape<typeof GetAccountResponseSchema>> {
  const [account, key] = await Promise.all([reading, keyOf(database, call)]);
  const { grants, balance_micros: balanceMicros, held_micros: heldMicros } = await readGrants(database, account);
  const { low_balance_micros: low } = account;
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
    ...(key && { key: viewKey(key) }),
    topUpUrl: topUpUrl ?? "",
    owedMicros: account.owed_micros,
    owed: formatMicros(account.owed_micros),
    ...(low === null ? {} : { lowBalanceMicros: low }),
    grants: grants.map(viewGrant),
  };
}
