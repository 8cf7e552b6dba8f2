import { setTimeout as wait } from "node:timers/promises";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Event, EventSchema } from "../../gen/vx/v1/event_pb.js";
import { list, listIn } from "./call.ts";
import { type Admin, withAdmin } from "./client.ts";
import { eachPage } from "./list.ts";
import { printOut } from "./output.ts";
import { JSON_RESPONSE, option, type Values } from "./parameters.ts";
import { columnsOf, createTable, jsonLine, pairsText } from "./print.ts";
import { command, noun } from "./row.ts";
import { collect } from "./values.ts";

const columns = columnsOf(
  EventSchema,
  "createdAt as TIME, accountId, type, id as ID, data",
  { "only in --json": "seq" },
  { data: pairsText },
);

const filters = {
  accountId: option("--account <account>", "only events of this account"),
  types: option("--type <types...>", "only events of these types, such as balance.low", collect),
};
const watching = { json: JSON_RESPONSE, ...filters };

export const row = noun([], {
  list: list("listEvents", columns, {
    about: "List events, the newest first.",
    none: "There are no such events.",
    fields: filters,
    examples: ["--account acme --limit 20"],
  }),
  watch: command({
    about: "Print new events until interrupted.",
    parameters: watching,
    examples: ["--type balance.depleted account.suspended --json"],
    run: watch,
  }),
});

const PAUSE_MS = 1_000;
/** An event becomes visible when its transaction ends, which is later than its time. */
const OVERLAP_MS = 30_000;

async function watch({ json, accountId = "", types = [] }: Values<typeof watching>): Promise<void> {
  const format = createTable(columns);
  const print = (events: readonly Event[]) =>
    json ? events.map((event) => jsonLine(EventSchema, event)).join("") : format(events);
  await withAdmin(async (admin) => {
    const filter = { accountId, types };
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
async function eventsSince(admin: Admin, filter: object, sinceMs: number): Promise<Event[]> {
  const found: Event[] = [];
  for await (const events of eachPage(listIn(admin, "listEvents", filter))) {
    const recent = events.filter((event) => timeOf(event) >= sinceMs);
    found.push(...recent);
    if (recent.length < events.length) break;
  }
  return found;
}

function timeOf({ createdAt }: Event): number {
  return createdAt ? timestampMs(createdAt) : 0;
}
