import type { ApiCall, Deps } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import type { TopUps } from "./top-ups.ts";

export function topUpsOf({ topUps }: Pick<Deps, "topUps">): TopUps {
  if (!topUps) throw new DomainError("payments_not_configured");
  return topUps;
}

export async function createBillingPage(deps: Deps, _request: unknown, call: ApiCall) {
  const { accountId } = call.key;
  const url = await makeLoggedChange(deps, call, { target: accountId }, (action) =>
    topUpsOf(deps).automatic.createBillingPage(action, accountId),
  );
  return { url };
}
