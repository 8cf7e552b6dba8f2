import { useState } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { LedgerDownload } from "../shared/ledger-download.tsx";
import { filterOf, requestOf } from "../shared/ledger-filters.tsx";
import { LedgerList } from "../shared/ledger-list.tsx";
import { EmptyState, ErrorState } from "../shared/states.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useQuery } from "../shared/use-query.ts";
import { hrefOf, navigate } from "../shared/use-route.ts";
import { ledgerOf } from "./account-ledger.tsx";
import { accountHref } from "./links.ts";
import { useApi } from "./operator-session.ts";

/** The ledger of an account that is named by its id, its external id or its name. */
export function LedgerSection({ params }: { readonly params: URLSearchParams }) {
  const api = useApi();
  const named = params.get("account") ?? "";
  const query = useQuery(
    async (signal) =>
      named === "" ? undefined : (await api.getAccount({ accountId: named }, { signal })).account,
    [named],
  );
  const account = named === "" ? undefined : query.data;
  const filter = filterOf(params);
  const href = hrefOf("ledger", { account: named });
  const source = account && ledgerOf(api, account.id, { section: "ledger", href });
  return (
    <>
      <PageHeader title="Ledger">
        {source && <LedgerDownload source={source} request={requestOf(filter)} />}
      </PageHeader>
      <AccountForm named={named} key={named} />
      {account && (
        <p>
          Entries of <a href={accountHref(account.id)}>{account.name}</a>
        </p>
      )}
      {named === "" && (
        <div class="panel">
          <EmptyState title="Select an account">
            Every account has a ledger of its own: all credits, adjustments and charges, in order.
          </EmptyState>
        </div>
      )}
      {query.problem && <ErrorState problem={query.problem} onRetry={query.reload} />}
      {source && !query.problem && <LedgerList source={source} filter={filter} />}
    </>
  );
}

function AccountForm({ named }: { readonly named: string }) {
  const [text, setText] = useState(named);
  const submit = (event: Event) => {
    event.preventDefault();
    navigate(hrefOf("ledger", { account: text.trim() }));
  };
  return (
    <form class="inline-form" onSubmit={submit}>
      <TextField
        label="Account"
        placeholder="Account id, external id or name"
        value={text}
        maxLength={100}
        onChange={setText}
      />
      <Button type="submit">Show</Button>
    </form>
  );
}
