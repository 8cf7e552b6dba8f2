import type { AccountEntry } from "../../gen/vx/admin/v1/admin_pb.js";
import { LedgerDownload } from "../shared/ledger-download.tsx";
import { filterOf, requestOf } from "../shared/ledger-filters.tsx";
import { LedgerList, type LedgerSource } from "../shared/ledger-list.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { accountHref, keyHref } from "./links.ts";
import { type AdminClient, useApi } from "./operator-session.ts";
import { RefundButton } from "./refund-button.tsx";

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
export function ledgerOf(api: AdminClient, accountId: string, place: Pick<LedgerSource, "section" | "href">): LedgerSource {
  return {
    ...place,
    id: accountId,
    list: (request, options) => api.listLedgerEntries({ ...request, accountId }, options),
    find: async (id, options) =>
      (await findEntries(api, id, options)).filter((found) => found.accountId === accountId).flatMap(({ entry }) => entry ?? []),
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
    actionsOf: (entry, onDone) => <RefundButton accountId={accountId} entry={entry} onDone={onDone} />,
  };
}

/** The entry of any account with an id. Other texts than ids match none. */
export async function findEntries(
  api: AdminClient,
  id: string,
  options: { readonly signal: AbortSignal },
): Promise<readonly AccountEntry[]> {
  if (!/^(gen|resp|msg|led)_[0-9a-z]{26}$/.test(id)) return [];
  return (await api.listRecentEntries({ id }, options)).entries;
}
