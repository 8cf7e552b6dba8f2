import { useState } from "preact/hooks";
import type { EntryCost } from "../../gen/vx/admin/v1/admin_pb.js";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { Detail, IdDetail } from "../shared/details.tsx";
import { EntryDialog } from "../shared/entry-dialog.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { LedgerDownload } from "../shared/ledger-download.tsx";
import { filterOf, requestOf } from "../shared/ledger-filters.tsx";
import { EntrySearch, entryColumnsOf, LedgerList, NO_ENTRY } from "../shared/ledger-list.tsx";
import { Money } from "../shared/money.tsx";
import { EmptyState, ErrorState } from "../shared/states.tsx";
import { ZoneNote } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
import { useQuery } from "../shared/use-query.ts";
import { hrefOf } from "../shared/use-route.ts";
import { AccountFilter } from "./account-filter.tsx";
import { findEntries, ledgerOf } from "./account-ledger.tsx";
import { accountHref, keyHref } from "./links.ts";
import { useApi } from "./operator-session.ts";
import { RefundButton } from "./refund-button.tsx";

/** The recent entries of all accounts, or the ledger of an account that is named by its id, its external id or its name. */
export function LedgerSection({ params }: { readonly params: URLSearchParams }) {
  const named = params.get("account") ?? "";
  const entry = params.get("entry") ?? "";
  return named === "" ? <RecentEntries key={entry} entry={entry} /> : <LedgerOfAccount named={named} params={params} />;
}

type LedgerOfAccountProps = { readonly named: string; readonly params: URLSearchParams };

function LedgerOfAccount({ named, params }: LedgerOfAccountProps) {
  const api = useApi();
  const query = useQuery(async (signal) => (await api.getAccount({ accountId: named }, { signal })).account, [named]);
  const account = query.problem ? undefined : query.data;
  const filter = filterOf(params);
  const href = hrefOf("ledger", { account: named });
  const source = account && ledgerOf(api, account.id, { section: "ledger", href });
  return (
    <>
      <PageHeader title="Ledger">{source && <LedgerDownload source={source} request={requestOf(filter)} />}</PageHeader>
      {account && (
        <p>
          Entries of <a href={accountHref(account.id)}>{account.name}</a>
        </p>
      )}
      {source ? (
        <LedgerList source={source} filter={filter}>
          <AccountFilter section="ledger" value={named} />
        </LedgerList>
      ) : (
        <div class="filters filters-single">
          <AccountFilter section="ledger" value={named} />
        </div>
      )}
      {query.problem && <ErrorState problem={query.problem} onRetry={query.reload} />}
    </>
  );
}

/** An entry with its account. */
type RecentEntry = LedgerEntry & {
  readonly accountId: string;
  readonly accountName: string;
  readonly keyName: string;
  readonly cost: EntryCost | undefined;
};

const ACCOUNT: Column<RecentEntry> = {
  header: "Account",
  cell: ({ accountId, accountName }) => (
    <a class="account-name" href={accountHref(accountId, { tab: "ledger" })}>
      {accountName}
    </a>
  ),
};

/** @param entry the id of the entry that is shown, or of its generation; empty for all */
function RecentEntries({ entry }: { readonly entry: string }) {
  const api = useApi();
  const [opened, setOpened] = useState<RecentEntry>();
  const [id, setId] = useState(entry);
  const pages = usePages<RecentEntry>(async (pageToken, signal) => {
    const page =
      id === ""
        ? await api.listRecentEntries({ pageToken, pageSize: 25 }, { signal })
        : { entries: await findEntries(api, id, { signal }), nextPageToken: "" };
    const rows = page.entries.flatMap(({ entry: found, accountId, accountName, keyName, cost }) =>
      found ? [{ ...found, accountId, accountName, keyName, cost }] : [],
    );
    return { rows, nextPageToken: page.nextPageToken };
  }, id);
  const [description, ...others] = entryColumnsOf<RecentEntry>(setOpened);
  return (
    <>
      <PageHeader title="Ledger" />
      <EntrySearch initial={entry} onSearch={setId} />
      {id === "" && (
        <div class="filters filters-single">
          <AccountFilter section="ledger" value="" />
        </div>
      )}
      <PagedTable
        caption="Recent ledger entries"
        columns={[...(description ? [description] : []), ACCOUNT, ...others]}
        keyOf={({ id }) => id}
        pages={pages}
        empty={
          id === "" ? (
            <EmptyState title="No entries yet">Credits and the charge of each call appear here.</EmptyState>
          ) : (
            <EmptyState title={NO_ENTRY} />
          )
        }
      />
      <p class="muted small">The last 12 months of all accounts. Select an account for filters and for all of its entries.</p>
      <ZoneNote />
      {opened && (
        <EntryDialog
          entry={opened}
          keyName={opened.keyName}
          keyHref={keyHref}
          onClose={() => setOpened(undefined)}
          actions={
            <RefundButton
              accountId={opened.accountId}
              entry={opened}
              onDone={() => {
                setOpened(undefined);
                pages.reload();
              }}
            />
          }
        >
          <Detail name="Account">
            <a href={accountHref(opened.accountId)}>{opened.accountName}</a>
          </Detail>
          <IdDetail name="Account id" id={opened.accountId} href={accountHref(opened.accountId)} />
          <Detail name="Upstream">{opened.cost?.upstream}</Detail>
          {opened.cost?.upstreamCostMicros !== undefined && (
            <Detail name="Cost there">
              <Money micros={opened.cost.upstreamCostMicros} />
            </Detail>
          )}
        </EntryDialog>
      )}
    </>
  );
}
