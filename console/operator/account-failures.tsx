import { failureFilterOf } from "../shared/failure-filters.tsx";
import { FailureList } from "../shared/failure-list.tsx";
import { ledgerOf } from "./account-ledger.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { accountHref } from "./links.ts";
import { useApi } from "./operator-session.ts";

/** The failed calls of an account, as a part of its page. */
export function AccountFailures({ account, params }: AccountTabProps) {
  const api = useApi();
  const place = { section: "accounts", href: accountHref(account.id, { tab: "failures" }) };
  type Options = { readonly signal: AbortSignal };
  const source = {
    ...ledgerOf(api, account.id, place),
    list: (request: Parameters<typeof api.listFailures>[0], options: Options) =>
      api.listFailures({ ...request, accountId: account.id }, options),
    count: (request: Parameters<typeof api.countFailures>[0], options: Options) =>
      api.countFailures({ ...request, accountId: account.id }, options),
  };
  return <FailureList source={source} filter={failureFilterOf(params)} />;
}
