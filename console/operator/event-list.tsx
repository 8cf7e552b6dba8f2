import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import type { OperatorEvent } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { startOfDay } from "../shared/days.ts";
import { detailText } from "../shared/detail-text.ts";
import { Detail, Details, IdDetail } from "../shared/details.tsx";
import { Dialog } from "../shared/dialog.tsx";
import { ListDownload, PAGE_SIZE } from "../shared/list-download.tsx";
import { Badge, EmptyState } from "../shared/states.tsx";
import { longTimeText, Time, ZoneNote } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
import { hrefOf } from "../shared/use-route.ts";
import type { EventFilter } from "./event-filters.tsx";
import { eventText } from "./event-text.ts";
import { accountHref, targetHref } from "./links.ts";
import { useApi } from "./operator-session.ts";

/** Saves all changes that match the filters as CSV. */
export function EventDownload({ filter }: { readonly filter: EventFilter }) {
  const api = useApi();
  const load = async (pageToken: string, options: { readonly signal: AbortSignal }) => {
    const request = { ...requestOf(filter), pageToken, pageSize: PAGE_SIZE };
    const page = await api.listOperatorEvents(request, options);
    return { rows: page.events, nextPageToken: page.nextPageToken };
  };
  return <ListDownload file={{ name: "the log", fileName: "log", header: HEADER, cellsOf, load }} />;
}

/** The changes that operators made, and those that were refused. */
export function EventList({ filter }: { readonly filter: EventFilter }) {
  const api = useApi();
  const [opened, setOpened] = useState<OperatorEvent>();
  const pages = usePages(async (pageToken, signal) => {
    const page = await api.listOperatorEvents({ ...requestOf(filter), pageToken, pageSize: 25 }, { signal });
    return { rows: page.events, nextPageToken: page.nextPageToken };
  }, JSON.stringify(filter));
  return (
    <>
      <PagedTable
        caption="Operator log"
        columns={columnsOf(setOpened)}
        keyOf={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="No changes">Every change that an operator makes appears here.</EmptyState>}
      />
      <ZoneNote />
      {opened && <EventDialog event={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}

function requestOf({ actor, method, target, account, from, to }: EventFilter) {
  const start = startOfDay(from, 0);
  const end = startOfDay(to, 1);
  return {
    actorId: actor,
    method,
    target,
    accountId: account,
    ...(start && { from: timestampFromDate(start) }),
    ...(end && { to: timestampFromDate(end) }),
  };
}

function columnsOf(onOpen: (event: OperatorEvent) => void): readonly Column<OperatorEvent>[] {
  return [
    {
      header: "Change",
      isRowHeader: true,
      cell: (event) => (
        <>
          <button type="button" class="link-button" onClick={() => onOpen(event)}>
            {eventText(event)}
          </button>
          {event.reason !== "" && <div class="muted small regular wrap">{event.reason}</div>}
        </>
      ),
    },
    { header: "By", cell: (event) => <div class="person wrap">{actorOf(event)}</div> },
    {
      header: "Account",
      cell: ({ accountId, accountName }) =>
        accountId === "" ? (
          <span class="muted">–</span>
        ) : (
          <a class="wrap" href={accountHref(accountId)}>
            {accountName || accountId}
          </a>
        ),
    },
    { header: "Outcome", cell: ({ outcome }) => <Outcome outcome={outcome} /> },
    { header: "Time", isNumber: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
}

/** The log has no names and addresses of members, because they are erased with their account. */
function isMember({ actorId }: OperatorEvent): boolean {
  return actorId.startsWith("usr_");
}

function actorOf(event: OperatorEvent): string {
  return isMember(event) ? "A member" : event.actorName;
}

function Outcome({ outcome }: { readonly outcome: string }) {
  return outcome === "ok" ? <Badge tone="good">OK</Badge> : <Badge tone="bad">{outcome}</Badge>;
}

type EventDialogProps = { readonly event: OperatorEvent; readonly onClose: () => void };

function EventDialog({ event, onClose }: EventDialogProps) {
  const { actorName, actorId, target, accountId, accountName, reason, outcome, createdAt } = event;
  return (
    <Dialog title={eventText(event)} onClose={onClose}>
      <Details isInDialog>
        <Detail name="Outcome">
          <Outcome outcome={outcome} />
        </Detail>
        <Detail name="Reason">{reason}</Detail>
        <Detail name="By">{actorOf(event)}</Detail>
        {actorId !== actorName && (
          <IdDetail name={isMember(event) ? "Member id" : "Operator id"} id={actorId} href={hrefOf("log", { actor: actorId })} />
        )}
        <Detail name="Time">{createdAt && longTimeText(createdAt)}</Detail>
        <Detail name="Account">{accountName === "" ? undefined : <a href={accountHref(accountId)}>{accountName}</a>}</Detail>
        <IdDetail name="Account id" id={accountId} href={accountHref(accountId)} />
        {target !== accountId && <IdDetail name="Target" id={target} href={targetHref(target)} />}
        {Object.entries(event.details).map(([name, value]) => {
          const [shown, text] = detailText(name, value);
          return (
            <Detail key={name} name={shown}>
              {text}
            </Detail>
          );
        })}
        <Detail name="Method">{event.method}</Detail>
        <IdDetail name="Request id" id={event.requestId} />
        <IdDetail name="Event id" id={event.id} />
      </Details>
    </Dialog>
  );
}

const HEADER = [
  "created_at",
  "actor_id",
  "actor_name",
  "method",
  "target",
  "account_id",
  "account_name",
  "outcome",
  "reason",
  "details",
  "request_id",
  "id",
];

function cellsOf(event: OperatorEvent): readonly string[] {
  return [
    event.createdAt ? timestampDate(event.createdAt).toISOString() : "",
    event.actorId,
    event.actorName,
    event.method,
    event.target,
    event.accountId,
    event.accountName,
    event.outcome,
    event.reason,
    JSON.stringify(event.details),
    event.requestId,
    event.id,
  ];
}
