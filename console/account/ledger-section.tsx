import { useState } from "preact/hooks";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
import { hrefOf } from "../shared/use-route.ts";
import { EntryDialog } from "./entry-dialog.tsx";
import { LedgerDownload } from "./ledger-download.tsx";
import { filterOf, LedgerFilters, requestOf } from "./ledger-filters.tsx";
import type { Viewer } from "./viewer.ts";

type LedgerSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** All changes of the balance, with filters. */
export function LedgerSection({ viewer, params }: LedgerSectionProps) {
  const [opened, setOpened] = useState<LedgerEntry>();
  const filter = filterOf(params);
  const request = requestOf(filter);
  const pages = usePages(async (pageToken, signal) => {
    const { entries, nextPageToken } = await viewer.ledgerService.listEntries(
      { ...request, pageToken, pageSize: 25 },
      { signal },
    );
    return { rows: entries, nextPageToken };
  }, JSON.stringify(filter));
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <>
      <PageHeader title="Ledger">
        <LedgerDownload viewer={viewer} request={request} />
      </PageHeader>
      <LedgerFilters filter={filter} />
      <PagedTable
        caption="Ledger entries"
        columns={columnsOf(setOpened)}
        keyOf={(entry) => entry.id}
        pages={pages}
        empty={
          <EmptyState title={isFiltered ? "No entries match the filters" : "No entries yet"}>
            {isFiltered ? (
              <a href={hrefOf("ledger")}>Show all entries</a>
            ) : (
              <>Credits and the charge of each call appear here.</>
            )}
          </EmptyState>
        }
      />
      <ZoneNote />
      {opened && <EntryDialog entry={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}

function columnsOf(onOpen: (entry: LedgerEntry) => void): readonly Column<LedgerEntry>[] {
  return [
    {
      header: "Description",
      isRowHeader: true,
      cell: (entry) => (
        <button type="button" class="link-button" onClick={() => onOpen(entry)}>
          {entry.reason || kindText(entry.kind)}
        </button>
      ),
    },
    {
      header: "Kind",
      cell: ({ kind }) => <Badge tone={kind === "generation" ? "neutral" : "good"}>{kindText(kind)}</Badge>,
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

export function kindText(kind: string): string {
  return kind.slice(0, 1).toUpperCase() + kind.slice(1);
}
