import { setTimeout as wait } from "node:timers/promises";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "../../gen/vx/v1/event_pb.js";
import { type Admin, withAdmin } from "./client.ts";
import { accountEventColumns } from "./columns.ts";
import { callCommand, type Define, type JsonOption } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { printOut } from "./output.ts";
import { createTable, jsonLine } from "./print.ts";

type Filter = { readonly account?: string; readonly type?: readonly string[] };

const NAMES = { list: "List events, the newest first.", watch: "Print new events until interrupted." };

export const define: Define = (group) => {
  const options = (name: keyof typeof NAMES, examples: readonly string[]) =>
    callCommand(group, name, NAMES[name], examples)
      .option("--account <account>", "only events of this account")
      .option("--type <types...>", "only events of these types, such as balance.low");
  addListOptions(options("list", ["vx events list --account acme --limit 20"])).action(list);
  options("watch", ["vx events watch --type balance.depleted account.suspended --json"]).action(watch);
};

function filterOf({ account: accountId = "", type: types = [] }: Filter) {
  return { accountId, types: [...types] };
}

async function list(options: ListOptions & Filter): Promise<void> {
  await callAndPrintList(options, "listEvents", {
    request: filterOf(options),
    rows: (page) => page.events,
    columns: accountEventColumns,
    none: "There are no such events.",
  });
}

const PAUSE_MS = 1_000;
/** An event becomes visible when its transaction ends, which is later than its time. */
const OVERLAP_MS = 30_000;

async function watch(options: JsonOption & Filter): Promise<void> {
  const format = createTable(accountEventColumns);
  const print = (events: readonly Event[]) =>
    options.json ? events.map((event) => jsonLine(EventSchema, event)).join("") : format(events);
  await withAdmin(async (admin) => {
    const filter = filterOf(options);
    const { events: last } = await admin.listEvents({ ...filter, pageSize: 1 });
    let known = await eventsSince(admin, filter, Math.max(0, ...last.map(timeOf)) - OVERLAP_MS);
    for (;;) {
      await wait(PAUSE_MS);
      const sinceMs = Math.max(0, ...known.map(timeOf)) - OVERLAP_MS;
      const recent = await eventsSince(admin, filter, sinceMs);
      const ids = new Set(known.map(({ id }) => id));
      const fresh = recent.filter((event) => !ids.has(event.id));
      known = recent;
      if (fresh.length > 0 && !(await printOut(print(fresh.reverse())))) return;
    }
  });
}

/** All events at this time or later, the newest first. */
async function eventsSince(
  admin: Admin,
  filter: { readonly accountId: string; readonly types: string[] },
  sinceMs: number,
): Promise<Event[]> {
  const found: Event[] = [];
  let pageToken = "";
  do {
    const page = await admin.listEvents({ ...filter, pageSize: 1_000, pageToken });
    const recent = page.events.filter((event) => timeOf(event) >= sinceMs);
    found.push(...recent);
    pageToken = recent.length === page.events.length ? page.nextPageToken : "";
  } while (pageToken !== "");
  return found;
}

function timeOf({ createdAt }: Event): number {
  return createdAt ? timestampMs(createdAt) : 0;
}
