import { useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { Copyable } from "../shared/copy-button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { InviteDialog } from "../shared/invite-dialog.tsx";
import { Money } from "../shared/money.tsx";
import { PRODUCT } from "../shared/product.ts";
import { SearchField } from "../shared/search-field.tsx";
import { EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { navigate } from "../shared/use-route.ts";
import { AccountState } from "./account-state.tsx";
import { ActionButton } from "./action-button.tsx";
import { CreateAccountDialog } from "./create-account-dialog.tsx";
import { accountHref } from "./links.ts";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

const COLUMNS: readonly Column<Account>[] = [
  {
    header: "Account",
    isRowHeader: true,
    cell: ({ name, id, externalId, email }) => (
      <>
        <a class="row-link" href={accountHref(id)}>
          {name}
        </a>
        <div class="muted small regular">{[externalId, email].filter((text) => text !== "").join(" · ")}</div>
        <Copyable text={id} what={`id of ${name}`} isMuted />
      </>
    ),
  },
  { header: "State", cell: (account) => <AccountState account={account} /> },
  { header: "Plan", cell: ({ plan }) => plan },
  {
    header: "Balance",
    isNumber: true,
    cell: ({ balanceMicros }) => <Money micros={balanceMicros} isAligned />,
  },
  {
    header: "Held",
    isNumber: true,
    cell: ({ heldMicros }) => <Money micros={heldMicros} />,
  },
  { header: "Created", isNumber: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

/** All accounts, or those that match a search. */
export function AccountsSection() {
  const api = useApi();
  const toast = useToast();
  const [search, setSearch] = useState("");
  const [isCreating, setCreating] = useState(false);
  const [isInviting, setInviting] = useState(false);
  const pages = usePages(async (pageToken, signal) => {
    const page = await api.listAccounts({ search, pageToken, pageSize: 25 }, { signal });
    return { rows: page.accounts, nextPageToken: page.nextPageToken };
  }, search);
  const created = ({ id, name }: Account) => {
    toast(`The account “${name}” is created.`);
    navigate(accountHref(id));
  };
  return (
    <>
      <PageHeader title="Accounts">
        {PRODUCT.signUp !== "closed" && (
          <ActionButton method="createSignUpInvitation" onClick={() => setInviting(true)}>
            Invite to sign up
          </ActionButton>
        )}
        <ActionButton method="createAccount" tone="primary" onClick={() => setCreating(true)}>
          Create account
        </ActionButton>
      </PageHeader>
      <SearchField
        label="Search accounts"
        placeholder="Name, external id, e-mail address or account id"
        maxLength={254}
        onSearch={setSearch}
      />
      <PagedTable
        caption="Accounts"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        pages={pages}
        empty={
          search === "" ? (
            <EmptyState title="No accounts yet">Create the first one, then credit it.</EmptyState>
          ) : (
            <EmptyState title="No account matches the search">
              The search finds parts of names, the start of an external id or an e-mail address, and whole
              account ids.
            </EmptyState>
          )
        }
      />
      <ZoneNote />
      {isInviting && (
        <InviteDialog
          title="Invite to sign up"
          hasRole={false}
          create={async ({ email }, reason) => (await api.createSignUpInvitation({ email, reason })).url}
          onDone={() => {}}
          onClose={() => setInviting(false)}
          Form={ReasonDialog}
        />
      )}
      {isCreating && <CreateAccountDialog onCreated={created} onClose={() => setCreating(false)} />}
    </>
  );
}
