import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Event } from "../../gen/vx/v1/event_pb.js";
import { accountEventText, eventDetails } from "./account-event-text.ts";
import { type Column, PagedTable } from "./data-table.tsx";
import { Detail, Details, IdDetail } from "./details.tsx";
import { Dialog } from "./dialog.tsx";
import { EventJson } from "./event-json.tsx";
import { SelectFilter } from "./filter-fields.tsx";
import { EmptyState } from "./states.tsx";
import { longTimeText, Time, ZoneNote } from "./time.tsx";
import { useStream } from "./use-live.ts";
import { type Page, usePages } from "./use-pages.ts";

/** The events of an account, or of all. */
export type EventSource = {
  /** Identifies the list: with another one, the first page is shown. */
  readonly id: string;
  /** A page of 25 events of a type, or of all types. */
  readonly list: (type: string, pageToken: string, signal: AbortSignal) => Promise<Page<Event>>;
  /** An item for each new event of a type, or whenever there may be one. */
  readonly watch: (type: string, signal: AbortSignal) => AsyncIterable<unknown>;
  readonly types: readonly string[];
  /** The section of the URL that shows the events; its parameter "type" is the filter. */
  readonly section: string;
};

type AccountEventListProps = {
  readonly source: EventSource;
  readonly type: string;
  /** The address of an account; undefined if all events are of one. */
  readonly accountHref?: (id: string) => string;
  /** Another filter. */
  readonly children?: ComponentChildren;
};

export const EVENTS_PER_PAGE = 25;

/** What happened, the newest first. */
export function AccountEventList({ source, type, accountHref, children }: AccountEventListProps) {
  const [opened, setOpened] = useState<Event>();
  const list = JSON.stringify([source.id, type]);
  const pages = usePages((pageToken, signal) => source.list(type, pageToken, signal), list);
  // Other pages stay as they are while they are read.
  const isLatest = pages.number === 1;
  useStream(isLatest ? list : undefined, (signal) => source.watch(type, signal), pages.reload);
  return (
    <>
      <fieldset class={children === undefined ? "filters filters-single" : "filters"}>
        <legend class="hidden">Filters</legend>
        {children}
        <SelectFilter
          label="Type"
          section={source.section}
          name="type"
          value={type}
          options={[["", "All types"], ...source.types.map((one) => [one, one] as const)]}
        />
      </fieldset>
      <PagedTable
        caption="Events"
        columns={columnsOf(setOpened, accountHref)}
        keyOf={({ id }) => id}
        pages={pages}
        empty={
          <EmptyState title={type === "" ? "No events" : "No events of this type"}>
            Credits, changes of keys, and warnings about the balance and the limits appear here.
          </EmptyState>
        }
      />
      <ZoneNote />
      {opened && <EventDialog event={opened} accountHref={accountHref} onClose={() => setOpened(undefined)} />}
    </>
  );
}

function columnsOf(onOpen: (event: Event) => void, accountHref: AccountEventListProps["accountHref"]): readonly Column<Event>[] {
  return [
    {
      header: "Event",
      isRowHeader: true,
      cell: (event) => (
        <>
          <button type="button" class="link-button" onClick={() => onOpen(event)}>
            {accountEventText(event)}
          </button>
          <div class="muted small regular">{event.type}</div>
        </>
      ),
    },
    ...(accountHref ? [accountColumn(accountHref)] : []),
    { header: "Time", isNumber: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}

function accountColumn(accountHref: (id: string) => string): Column<Event> {
  return {
    header: "Account",
    cell: ({ accountId }) =>
      accountId === "" ? (
        <span class="muted">–</span>
      ) : (
        <a class="wrap small" href={accountHref(accountId)}>
          {accountId}
        </a>
      ),
  };
}

type EventDialogProps = {
  readonly event: Event;
  readonly accountHref: AccountEventListProps["accountHref"];
  readonly onClose: () => void;
};

function EventDialog({ event, accountHref, onClose }: EventDialogProps) {
  return (
    <Dialog title={accountEventText(event)} onClose={onClose}>
      <Details isInDialog>
        {eventDetails(event).map(([name, text]) => (
          <Detail key={name} name={name}>
            {text}
          </Detail>
        ))}
        <Detail name="Type">{event.type}</Detail>
        <Detail name="Time">{event.createdAt && longTimeText(event.createdAt)}</Detail>
        <Detail name="Number">{event.seq.toString()}</Detail>
        {accountHref && <IdDetail name="Account id" id={event.accountId} href={accountHref(event.accountId)} />}
        <IdDetail name="Event id" id={event.id} />
      </Details>
      <EventJson event={event} />
    </Dialog>
  );
}
