import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { capitalized } from "./capitalized.ts";
import { type Column, PagedTable } from "./data-table.tsx";
import { EntryDialog } from "./entry-dialog.tsx";
import { type LedgerChoices, type LedgerFilter, LedgerFilters, type LedgerRequest, requestOf } from "./ledger-filters.tsx";
import { Money, numberText } from "./money.tsx";
import { SearchField } from "./search-field.tsx";
import { Badge, EmptyState } from "./states.tsx";
import { Time, ZoneNote } from "./time.tsx";
import { type Pages, usePages } from "./use-pages.ts";
import { useQuery } from "./use-query.ts";

/** The ledger of one account. */
export type LedgerSource = {
  /** Identifies the ledger: with another one, the first page is shown. */
  readonly id: string;
  readonly list: (
    request: LedgerRequest & { readonly pageToken: string; readonly pageSize: number },
    options: { readonly signal: AbortSignal },
  ) => Promise<{ readonly entries: readonly LedgerEntry[]; readonly nextPageToken: string }>;
  /** The section of the URL that shows the ledger. */
  readonly section: string;
  /** The address of the ledger without filters. */
  readonly href: string;
  /** The entry with an id, or of the generation with an id; none if there is none. */
  readonly find: (id: string, options: { readonly signal: AbortSignal }) => Promise<readonly LedgerEntry[]>;
  readonly choicesOf: (signal: AbortSignal) => Promise<LedgerChoices>;
  /** The address of the page that shows a key. */
  readonly keyHref: (id: string) => string;
  /** What the viewer can do with an entry. `onDone` shows the entries again. */
  readonly actionsOf?: (entry: LedgerEntry, onDone: () => void) => ComponentChildren;
};

type LedgerListProps = {
  readonly source: LedgerSource;
  readonly filter: LedgerFilter;
  /** Another filter, before those of the entries. */
  readonly children?: ComponentChildren;
};

const NO_CHOICES: LedgerChoices = { models: [], keys: new Map() };

/** All changes of a balance, with filters. */
export function LedgerList({ source, filter, children }: LedgerListProps) {
  const [opened, setOpened] = useState<LedgerEntry>();
  const [id, setId] = useState("");
  const pages = usePages(
    async (pageToken, signal) => {
      if (id !== "") return { rows: await source.find(id, { signal }), nextPageToken: "" };
      const request = { ...requestOf(filter), pageToken, pageSize: 25 };
      const { entries, nextPageToken } = await source.list(request, { signal });
      return { rows: entries, nextPageToken };
    },
    JSON.stringify([source.id, filter, id]),
  );
  const { data: choices = NO_CHOICES } = useQuery(source.choicesOf, [source.id]);
  const isFiltered = id !== "" || Object.values(filter).some((value) => value !== "");
  return (
    <>
      <EntrySearch onSearch={setId} />
      {id === "" && (
        <LedgerFilters filter={filter} choices={choices} section={source.section}>
          {children}
        </LedgerFilters>
      )}
      <PagedTable
        caption="Ledger entries"
        columns={entryColumnsOf(setOpened)}
        keyOf={(entry) => entry.id}
        pages={pages}
        empty={
          <EmptyState title={id !== "" ? NO_ENTRY : isFiltered ? "No entries match the filters" : "No entries yet"}>
            {id !== "" ? null : isFiltered ? (
              <a href={source.href}>Show all entries</a>
            ) : (
              <>Credits and the charge of each call appear here.</>
            )}
          </EmptyState>
        }
      />
      {isFirstMissing(pages, isFiltered) && <p class="muted small">Earlier entries are archived.</p>}
      <ZoneNote />
      {opened && (
        <EntryDialog
          entry={opened}
          keyName={choices.keys.get(opened.keyId) ?? ""}
          keyHref={source.keyHref}
          onClose={() => setOpened(undefined)}
          actions={source.actionsOf?.(opened, () => {
            setOpened(undefined);
            pages.reload();
          })}
        />
      )}
    </>
  );
}

/** What a list shows if it finds no entry. */
export const NO_ENTRY = "No entry has this id";

type EntrySearchProps = { readonly initial?: string; readonly onSearch: (id: string) => void };

export function EntrySearch({ initial = "", onSearch }: EntrySearchProps) {
  return (
    <SearchField
      label="Find an entry by its id"
      placeholder="Id of a generation: gen_…"
      maxLength={64}
      initial={initial}
      onSearch={onSearch}
    />
  );
}

/** The entries of an account are numbered from 1 without gaps, and only the oldest ones can be archived. */
function isFirstMissing({ data }: Pages<LedgerEntry>, isFiltered: boolean): boolean {
  if (isFiltered || data === undefined || data.nextPageToken !== "") return false;
  const oldest = data.rows.at(-1);
  return oldest !== undefined && oldest.seq > 1n;
}

export function entryColumnsOf<Entry extends LedgerEntry>(onOpen: (entry: Entry) => void): readonly Column<Entry>[] {
  return [
    {
      header: "Description",
      isRowHeader: true,
      cell: (entry) => (
        <button type="button" class="link-button" onClick={() => onOpen(entry)}>
          {entry.reason || capitalized(entry.kind)}
        </button>
      ),
    },
    {
      header: "Kind",
      cell: ({ kind }) => <Badge tone={kind === "generation" ? "neutral" : "good"}>{capitalized(kind)}</Badge>,
    },
    {
      header: "Tokens",
      isNumber: true,
      cell: ({ inputTokens, outputTokens, kind }) =>
        kind === "generation" ? numberText(inputTokens + outputTokens) : <span class="muted">–</span>,
    },
    {
      header: "Amount",
      isNumber: true,
      cell: ({ amountMicros }) => <Money micros={amountMicros} isAligned />,
    },
    {
      header: "Balance",
      isNumber: true,
      cell: (entry) => <Money micros={entry.balanceAfterMicros} isAligned />,
    },
    { header: "Time", isNumber: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}
