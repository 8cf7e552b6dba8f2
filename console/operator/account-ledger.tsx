import { LedgerDownload } from "../shared/ledger-download.tsx";
import { filterOf, requestOf } from "../shared/ledger-filters.tsx";
import { LedgerList, type LedgerSource } from "../shared/ledger-list.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { accountHref, keyHref } from "./links.ts";
import { type AdminClient, useApi } from "./operator-session.ts";

/** One page of a list. */
const MAX_CHOICES = 1_000;

/** The ledger of an account, as a part of its page. */
export function AccountLedger({ account, params }: AccountTabProps) {
  const href = accountHref(account.id, { tab: "ledger" });
  const source = ledgerOf(useApi(), account.id, { section: "accounts", href });
  const filter = filterOf(params);
  return (
    <>
      <div class="page-actions">
        <LedgerDownload source={source} request={requestOf(filter)} />
      </div>
      <LedgerList source={source} filter={filter} />
    </>
  );
}

/** The place is where the ledger is shown. */
export function ledgerOf(
  api: AdminClient,
  accountId: string,
  place: Pick<LedgerSource, "section" | "href">,
): LedgerSource {
  return {
    ...place,
    id: accountId,
    list: (request, options) => api.listLedgerEntries({ ...request, accountId }, options),
    choicesOf: async (signal) => {
      const [{ models }, { apiKeys }] = await Promise.all([
        api.listModels({ pageSize: MAX_CHOICES }, { signal }),
        api.listKeys({ accountId, pageSize: MAX_CHOICES }, { signal }),
      ]);
      return {
        models: models.map(({ id }) => id),
        keys: new Map(apiKeys.map(({ id, name }) => [id, name])),
      };
    },
    keyHref,
  };
}
