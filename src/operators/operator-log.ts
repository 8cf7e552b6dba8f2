import * as sql from "../../gen/sql/calls.ts";
import { type Action, callerOf } from "../database/action.ts";
import { mergeCells } from "../database/cells/merge-cells.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { LANE_COUNT, laneOfId } from "../domain/lane.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";

export type EventRow = Omit<sql.ListOperatorEventsRow, "details"> & { details: Record<string, string> };

/** An empty text and an undefined time match all events. */
export type EventFilter = {
  readonly actorId: string;
  readonly method: string;
  readonly target: string;
  readonly accountId: string;
  readonly from: Date | undefined;
  /** Exclusive. */
  readonly to: Date | undefined;
};

/** Logs a change that was refused. A change that is made is logged in its transaction. */
export async function logRefusal(database: Cells, action: Action, outcome: string): Promise<void> {
  const { accountId = action.target.startsWith("acct_") ? action.target : "" } = action.actor;
  const located = accountId || (action.target.startsWith("key_") ? action.target : "");
  const lane = located === "" ? NO_LANE : laneOfId(located);
  await sql.logRefusal(database.at(lane), { caller: callerOf(action), lane, accountId, outcome });
}

/** Events that concern no account are in the first cell, in a chain beside those of the lanes. */
const NO_LANE = LANE_COUNT;
const FIRST_PAGE = "0_0_0";

/** Newest first. */
export async function listOperatorEvents(database: Cells, filter: EventFilter, page: Page) {
  const after = page.after || FIRST_PAGE;
  if (!/^\d{1,16}_\d{1,4}_\d{1,18}$/.test(after)) throw badToken();
  const [micros = "", lane, seq = ""] = after.split("_");
  const start = { created_micros: BigInt(micros), lane: Number(lane), seq: BigInt(seq) };
  const rows = await mergeCells<EventRow>(database, page.size + 1, {
    read: (cell, last, limit) => readEvents(cell, filter, last ?? start, limit),
    compare: compareEvents,
    laneOf: (row) => row.lane,
  });
  return cutPage(rows, page, (row) => `${row.created_micros}_${row.lane}_${row.seq}`);
}

type EventPlace = Pick<EventRow, "created_micros" | "lane" | "seq">;

async function readEvents(cell: FunctionCaller, filter: EventFilter, place: EventPlace, limit: number) {
  const before = { beforeMicros: place.created_micros, beforeLane: place.lane, beforeSeq: place.seq };
  return (await sql.listOperatorEvents(cell, { ...filter, ...before, limit })) as EventRow[];
}

/** Newest first. */
function compareEvents(one: EventPlace, other: EventPlace): number {
  if (one.created_micros !== other.created_micros) return one.created_micros > other.created_micros ? -1 : 1;
  return other.lane - one.lane || (one.seq > other.seq ? -1 : 1);
}
