import type { ListOperatorEventsRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { readPage } from "../domain/page.ts";
import { namesOf } from "../store/names-of.ts";
import { listOperatorEvents as listEventRows } from "../store/operator-log.ts";
import { dateOf } from "./date-of.ts";
import type { Deps } from "./deps.ts";
import { viewOperatorEvent } from "./views.ts";

export async function listOperatorEvents({ database }: Deps, request: ListOperatorEventsRequest) {
  const { actorId, method, target, accountId } = request;
  const from = dateOf("from", request.from);
  const to = dateOf("to", request.to);
  const filter = { actorId, method, target, accountId, from, to };
  const { rows, nextPageToken } = await listEventRows(database, filter, readPage("events", request));
  const names = await namesOf(
    database,
    rows.map((row) => row.account_id),
    rows.map((row) => row.target).filter((id) => /^(key|op)_/.test(id)),
  );
  return { events: rows.map((row) => viewOperatorEvent(row, names)), nextPageToken };
}
