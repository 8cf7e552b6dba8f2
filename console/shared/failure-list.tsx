import { useState } from "preact/hooks";
import type { Failure } from "../../gen/vx/v1/failure_pb.js";
import { type Column, PagedTable } from "./data-table.tsx";
import { Detail, Details, IdDetail } from "./details.tsx";
import { Dialog } from "./dialog.tsx";
import { type FailureCounter, FailureCounts } from "./failure-counts.tsx";
import { FAILURE_TITLES, type FailureFilter, FailureFilters, type FailureRequest, failureRequestOf } from "./failure-filters.tsx";
import type { LedgerChoices } from "./ledger-filters.tsx";
import { numberText } from "./money.tsx";
import { Badge, EmptyState } from "./states.tsx";
import { longTimeText, Time, ZoneNote } from "./time.tsx";
import { usePages } from "./use-pages.ts";
import { useQuery } from "./use-query.ts";

/** The failed calls of one account. */
export type FailureSource = {
  /** Identifies the list: with another one, the first page is shown. */
  readonly id: string;
  readonly list: (
    request: FailureRequest & { readonly pageToken: string; readonly pageSize: number },
    options: { readonly signal: AbortSignal },
  ) => Promise<{ readonly failures: readonly Failure[]; readonly nextPageToken: string }>;
  readonly count: FailureCounter;
  /** The section of the URL that shows the list. */
  readonly section: string;
  /** The address of the list without filters. */
  readonly href: string;
  readonly choicesOf: (signal: AbortSignal) => Promise<LedgerChoices>;
  /** The address of the page that shows a key. */
  readonly keyHref: (id: string) => string;
};

type FailureListProps = { readonly source: FailureSource; readonly filter: FailureFilter };

const NO_CHOICES: LedgerChoices = { models: [], keys: new Map() };

/** The calls that were refused or failed without a charge, the newest first. */
export function FailureList({ source, filter }: FailureListProps) {
  const [opened, setOpened] = useState<Failure>();
  const pages = usePages(
    async (pageToken, signal) => {
      const request = { ...failureRequestOf(filter), pageToken, pageSize: 25 };
      const { failures, nextPageToken } = await source.list(request, { signal });
      return { rows: failures, nextPageToken };
    },
    JSON.stringify([source.id, filter]),
  );
  const { data: choices = NO_CHOICES } = useQuery(source.choicesOf, [source.id]);
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <>
      <FailureFilters filter={filter} choices={choices} section={source.section} />
      <FailureCounts id={source.id} count={source.count} filter={filter} section={source.section} />
      <PagedTable
        caption="Failed calls"
        columns={columnsOf(choices, setOpened)}
        keyOf={({ time, requestId }) => `${time?.seconds}.${time?.nanos} ${requestId}`}
        pages={pages}
        empty={
          <EmptyState title={isFiltered ? "No calls match the filters" : "No failed calls"}>
            {isFiltered ? (
              <a href={source.href}>Show all failed calls</a>
            ) : (
              "Calls that were refused, or failed without a charge, appear here for some days."
            )}
          </EmptyState>
        }
      />
      <ZoneNote />
      {opened && (
        <FailureDialog
          failure={opened}
          keyName={choices.keys.get(opened.keyId) ?? ""}
          keyHref={source.keyHref}
          onClose={() => setOpened(undefined)}
        />
      )}
    </>
  );
}

function titleOf({ code }: Failure): string {
  return FAILURE_TITLES[code] ?? code;
}

function columnsOf({ keys }: LedgerChoices, onOpen: (failure: Failure) => void): readonly Column<Failure>[] {
  const none = <span class="muted">–</span>;
  return [
    {
      header: "Error",
      isRowHeader: true,
      cell: (failure) =>
        failure.omitted > 0 ? (
          <span class="muted regular">{numberText(failure.omitted)} more calls failed in this minute</span>
        ) : (
          <>
            <button type="button" class="link-button" onClick={() => onOpen(failure)}>
              {titleOf(failure)}
            </button>
            <div class="muted small regular wrap">{failure.message}</div>
          </>
        ),
    },
    {
      header: "Status",
      cell: ({ status }) => (status === 0 ? none : <Badge tone={status >= 500 ? "bad" : "warn"}>{String(status)}</Badge>),
    },
    { header: "Model", cell: ({ model }) => (model === "" ? none : <span class="wrap">{model}</span>) },
    {
      header: "Key",
      cell: ({ keyId }) => (keyId === "" ? none : <span class="wrap">{keys.get(keyId) ?? `…${keyId.slice(-6)}`}</span>),
    },
    { header: "Time", isNumber: true, cell: ({ time }) => <Time at={time} /> },
  ];
}

type FailureDialogProps = {
  readonly failure: Failure;
  /** Empty if it is not known. */
  readonly keyName: string;
  readonly keyHref: (id: string) => string;
  readonly onClose: () => void;
};

function FailureDialog({ failure, keyName, keyHref, onClose }: FailureDialogProps) {
  return (
    <Dialog title={titleOf(failure)} onClose={onClose}>
      <Details isInDialog>
        <Detail name="Message">{failure.message}</Detail>
        <Detail name="Code">
          <code>{failure.code}</code>
        </Detail>
        <Detail name="Status">{String(failure.status)}</Detail>
        <Detail name="Time">{failure.time && longTimeText(failure.time)}</Detail>
        <Detail name="Duration">{numberText(failure.latencyMs)} ms</Detail>
        <Detail name="Method">{failure.method}</Detail>
        <Detail name="Model">{failure.model}</Detail>
        <Detail name="Upstream">{failure.upstream}</Detail>
        <Detail name="Key">{keyName}</Detail>
        <IdDetail name="Key id" id={failure.keyId} href={keyHref(failure.keyId)} />
        <IdDetail name="Request id" id={failure.requestId} />
      </Details>
    </Dialog>
  );
}
