import { useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { Field } from "../shared/field.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money } from "../shared/money.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
import type { Operator } from "./app.tsx";

const COLUMNS: readonly Column<Account>[] = [
  {
    header: "Account",
    isRowHeader: true,
    cell: ({ name, id }) => (
      <>
        {name}
        <div>
          <code class="muted">{id}</code>
        </div>
      </>
    ),
  },
  {
    header: "State",
    cell: ({ state }) => <Badge tone={state === "active" ? "good" : "bad"}>{state}</Badge>,
  },
  { header: "Plan", cell: ({ plan }) => plan },
  {
    header: "Balance",
    isNumber: true,
    cell: ({ balanceMicros }) => <Money micros={balanceMicros} isAligned />,
  },
  { header: "Held", isNumber: true, cell: ({ heldMicros }) => <Money micros={heldMicros} isAligned /> },
  { header: "Created", isNumber: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

export function AccountsSection({ operator }: { readonly operator: Operator }) {
  const [search, setSearch] = useState("");
  const pages = usePages(async (pageToken, signal) => {
    const page = await operator.listAccounts({ search, pageToken, pageSize: 25 }, { signal });
    return { rows: page.accounts, nextPageToken: page.nextPageToken };
  }, search);
  return (
    <>
      <PageHeader title="Accounts" />
      <Field label="Search" hint="A part of the name, the external id or the e-mail address, or an id.">
        {(control) => (
          <input
            {...control}
            type="search"
            maxLength={254}
            value={search}
            onChange={(event) => setSearch(event.currentTarget.value.trim())}
          />
        )}
      </Field>
      <PagedTable
        caption="Accounts"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title={search === "" ? "No accounts yet" : "No account matches the search"} />}
      />
      <ZoneNote />
    </>
  );
}
