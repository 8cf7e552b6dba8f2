import { useState } from "preact/hooks";
import type { FoundKey } from "../../gen/vx/admin/v1/admin_pb.js";
import type { ApiKey } from "../../gen/vx/v1/key_pb.js";
import { maskedIfFull } from "../../src/domain/key-query.ts";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { SelectFilter } from "../shared/filter-fields.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { SearchField } from "../shared/search-field.tsx";
import { EmptyState } from "../shared/states.tsx";
import { ZoneNote } from "../shared/time.tsx";
import { useToast } from "../shared/toast.tsx";
import { usePages } from "../shared/use-pages.ts";
import { KeyDialogs, keyColumnsOf, type OpenKeyDialog } from "./key-actions.tsx";
import { accountHref } from "./links.ts";
import { useApi } from "./operator-session.ts";

/** A key with its account. */
type AccountKey = ApiKey & { readonly account: FoundKey };

const ACCOUNT: Column<AccountKey> = {
  header: "Account",
  cell: ({ account: { accountId, accountName } }) => (
    <a class="wrap" href={accountHref(accountId, { tab: "keys" })}>
      {accountName}
    </a>
  ),
};

const USES = [
  ["", "All keys"],
  ["30", "Active, not used for 30 days"],
  ["90", "Active, not used for 90 days"],
] as const;

/** The keys of all accounts, those that match a search, or those that were not used for some days. */
export function KeysSection({ params }: { readonly params: URLSearchParams }) {
  const api = useApi();
  const toast = useToast();
  const [search, setSearch] = useState("");
  const [open, setOpen] = useState<OpenKeyDialog>();
  const unused = params.get("unused") ?? "";
  const query = unused === "" ? maskedIfFull(search) : "";
  const pages = usePages<AccountKey>(
    async (pageToken, signal) => {
      const request = { query, unusedDays: Number(unused), pageToken, pageSize: 25 };
      const page = await api.searchKeys(request, { signal });
      const rows = page.keys.flatMap((found) => (found.apiKey ? [{ ...found.apiKey, account: found }] : []));
      return { rows, nextPageToken: page.nextPageToken };
    },
    JSON.stringify([query, unused]),
  );
  const changed = (text: string) => {
    toast(text);
    pages.reload();
  };
  // The page of the account has all columns.
  const [key, ...others] = keyColumnsOf(setOpen).filter(({ header }) => !/^(Scopes|Expires)$/.test(header));
  return (
    <>
      <PageHeader title="Keys" />
      {unused === "" && (
        <SearchField
          label="Search keys"
          placeholder="Name, key id, or characters of the key: vx_live_abcd…wxyz"
          maxLength={100}
          onSearch={setSearch}
        />
      )}
      <div class="filters filters-single">
        <SelectFilter label="Use" section="keys" name="unused" value={unused} options={USES} />
      </div>
      <PagedTable
        caption="Keys"
        columns={[...(key ? [key] : []), ACCOUNT, ...others]}
        keyOf={({ id }) => id}
        pages={pages}
        empty={
          unused !== "" ? (
            <EmptyState title={`Every active key was used or created in the last ${unused} days`} />
          ) : search === "" ? (
            <EmptyState title="No keys yet">Keys are created on the page of their account.</EmptyState>
          ) : (
            <EmptyState title="No key matches the search">
              The search finds parts of names, whole key ids, and keys by their first four characters.
            </EmptyState>
          )
        }
      />
      <ZoneNote />
      <KeyDialogs open={open} onDone={changed} onClose={() => setOpen(undefined)} />
    </>
  );
}
