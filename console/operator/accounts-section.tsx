import { useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { Copyable } from "../shared/copy-button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { Field } from "../shared/field.tsx";
import { type FilterValues, filterValuesOf, SelectFilter } from "../shared/filter-fields.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { InviteDialog } from "../shared/invite-dialog.tsx";
import { amountOf, Money } from "../shared/money.tsx";
import { PRODUCT } from "../shared/product.ts";
import { SearchField } from "../shared/search-field.tsx";
import { EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { changeParams, hrefOf, navigate } from "../shared/use-route.ts";
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
    header: "Spent today",
    isNumber: true,
    cell: ({ spentTodayMicros }) => <Money micros={spentTodayMicros} />,
  },
  {
    header: "This month",
    isNumber: true,
    cell: ({ spentMonthMicros }) => <Money micros={spentMonthMicros} />,
  },
  { header: "Created", isNumber: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

const SORTS = [
  ["", "Newest first"],
  ["name", "Name"],
  ["lowest_balance", "Lowest balance first"],
  ["highest_balance", "Highest balance first"],
  ["spent_today", "Most spent today"],
  ["spent_month", "Most spent this month"],
] as const;

const STATES = [
  ["", "All states"],
  ["active", "Active"],
  ["suspended", "Suspended"],
  ["closed", "Closed"],
] as const;

const FILTERS = ["sort", "state", "below"] as const;

/** All accounts in an order, those with a state or a low balance, or those that match a search. */
export function AccountsSection({ params }: { readonly params: URLSearchParams }) {
  const api = useApi();
  const toast = useToast();
  const [search, setSearch] = useState("");
  const [isCreating, setCreating] = useState(false);
  const [isInviting, setInviting] = useState(false);
  const filter = filterValuesOf(params, FILTERS);
  const pages = usePages(
    async (pageToken, signal) => {
      const list = search === "" ? requestOf(filter) : { search };
      const page = await api.listAccounts({ ...list, pageToken, pageSize: 25 }, { signal });
      return { rows: page.accounts, nextPageToken: page.nextPageToken };
    },
    JSON.stringify([search, filter]),
  );
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
      {search === "" && <AccountFilters filter={filter} />}
      <PagedTable
        caption="Accounts"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        pages={pages}
        empty={
          search === "" && Object.values(filter).some((value) => value !== "") ? (
            <EmptyState title="No account matches the filters">
              <a href={hrefOf("accounts")}>Show all accounts</a>
            </EmptyState>
          ) : search === "" ? (
            <EmptyState title="No accounts yet">Create the first one, then credit it.</EmptyState>
          ) : (
            <EmptyState title="No account matches the search">
              The search finds parts of names, the start of an external id or an e-mail address, and whole account ids.
            </EmptyState>
          )
        }
      />
      <p class="muted small">
        Days and months of spend are in UTC. Spend, and orders by spend or balance, are up to a minute old.
      </p>
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

type Filter = FilterValues<(typeof FILTERS)[number]>;

function requestOf({ sort, state, below }: Filter) {
  const micros = amountOf(below);
  const isByBalance = sort.endsWith("_balance");
  return {
    sort,
    state,
    ...(isByBalance && micros !== undefined && micros > 0n && { balanceBelowMicros: micros }),
  };
}

/** A balance is compared only in an order by balance, which its field selects. */
function AccountFilters({ filter: { sort, state, below } }: { readonly filter: Filter }) {
  const isByBalance = sort.endsWith("_balance");
  const isInvalid = below !== "" && !((amountOf(below) ?? 0n) > 0n);
  return (
    <fieldset class="filters">
      <legend class="hidden">Order and filters</legend>
      <SelectFilter label="Order" section="accounts" name="sort" value={sort} options={SORTS} />
      <SelectFilter label="State" section="accounts" name="state" value={state} options={STATES} />
      <Field label="Balance below" error={isInvalid ? "Enter an amount above 0, such as 5.00." : undefined}>
        {(control) => (
          <input
            {...control}
            inputMode="decimal"
            autocomplete="off"
            maxLength={21}
            placeholder="Any"
            value={isByBalance ? below : ""}
            onChange={(event) => {
              const text = event.currentTarget.value.trim();
              changeParams("accounts", { below: text, sort: isByBalance ? sort : "lowest_balance" });
            }}
          />
        )}
      </Field>
    </fieldset>
  );
}
