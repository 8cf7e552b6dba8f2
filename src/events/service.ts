import type { JsonObject } from "@bufbuild/protobuf";
import type { ListEventsRequest as ListAllEventsRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { EventSchema, EventService } from "../../gen/vx/v1/event_pb.js";
import { accountIdToRead } from "../accounts/named-account.ts";
import { type ApiCall, type Deps, defineService } from "../api/define-service.ts";
import { viewOf } from "../api/view.ts";
import { DomainError } from "../domain/errors.ts";
import { pageSizeOf, readPage } from "../domain/page.ts";
import { type EventRow, eventPosition, listAllEvents as listAllEventRows, listEvents, listLatestEvents } from "./store.ts";
import { checkEventType } from "./types.ts";

/** A watcher that does not read keeps them in memory. */
const WATCHED_AT_ONCE = 50;

export const eventService = defineService(EventService, {
  listEvents: async ({ database, eventsDays }, request, { key: { accountId } }) => {
    const types = eventTypesOf(request);
    const size = pageSizeOf(request);
    const isLatest = request.order === "desc";
    if (isLatest && request.after === "now") throw DomainError.ofField("after", 'must not be "now" with "desc"');
    const position = await eventPosition(database, accountId, request.after, eventsDays);
    const place = isLatest ? { before: request.after === "" ? undefined : position } : { after: position };
    const rows = await listEvents(database, accountId, types, place, size + 1);
    const events = rows.slice(0, size).map(viewEvent);
    return { events, nextAfter: events.at(-1)?.id ?? request.after, hasMore: rows.length > size };
  },
  watchEvents: async function* ({ database, eventsDays, eventWatch }, request, call) {
    const { accountId } = call.key;
    const types = eventTypesOf(request);
    const watcher = eventWatch.open(accountId, call.key, (error) => call.abort(error));
    try {
      let position = await eventPosition(database, accountId, request.after, eventsDays);
      let end = position;
      call.startStream();
      for (;;) {
        const rows = await listEvents(database, accountId, types, { after: position }, WATCHED_AT_ONCE);
        // A key is watched with the events; the session of a member is not.
        if (call.actor.kind === "member") await call.recheck();
        for (const row of rows) {
          watcher.check();
          yield { event: viewEvent(row) };
        }
        position = rows.at(-1)?.seq ?? position;
        if (rows.length === WATCHED_AT_ONCE) continue;
        // Events of other types are between the last row and the end.
        if (end > position) position = end;
        end = await watcher.wait(position, call.signal);
      }
    } finally {
      watcher.close();
    }
  },
});

export async function listAllEvents(deps: Deps, request: ListAllEventsRequest, call: ApiCall) {
  const { database } = deps;
  const types = eventTypesOf(request);
  const accountId = await accountIdToRead(deps, call, request.accountId);
  const page = readPage("events", request, [accountId, types]);
  const { rows, nextPageToken } =
    accountId === "" ? await listAllEventRows(database, types, page) : await listLatestEvents(database, accountId, types, page);
  return { events: rows.map(viewEvent), nextPageToken };
}

/** The types of a request, each once. A query can also have them in one text. */
function eventTypesOf(request: { readonly types: readonly string[] }): string[] {
  const types = new Set(request.types.flatMap((text) => text.split(",")));
  for (const type of types) checkEventType("types", type);
  return [...types];
}

function viewEvent(row: EventRow) {
  return viewOf(EventSchema, row, { data: JSON.parse(row.data) as JsonObject });
}
