import { LANE_COUNT, laneOfId } from "../domain/lane.ts";
import type { MemberRole } from "../domain/member.ts";
import type { Role } from "../domain/operator.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";
import { mergeCells } from "./merge-cells.ts";

/** Who changes something, by which method and why, for the operator log. It must contain no key and no token. */
export type OperatorAction = {
  readonly actorId: string;
  readonly actorName: string;
  /** The account of a member; undefined for operators. */
  readonly accountId?: string | undefined;
  /** The role with which the operator or member was admitted: another one refuses the change. Undefined for a person who joins. */
  readonly actorRole?: Role | MemberRole | undefined;
  /** Such as "CreditAccount". */
  readonly method: string;
  /** The id or name that the request names; logged if the change is refused. */
  readonly target: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, string>>;
  readonly requestId: string;
};

export type EventRow = {
  lane: number;
  seq: bigint;
  created_at: Date;
  created_micros: bigint;
  actor_id: string;
  actor_name: string;
  method: string;
  target: string;
  account_id: string;
  reason: string;
  outcome: string;
  details: Record<string, string>;
  request_id: string;
};

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

/** The action as functions of the database take it. */
export function actionJson(action: OperatorAction): string {
  return JSON.stringify({
    actor_id: action.actorId,
    actor_name: action.actorName,
    actor_role: action.actorRole,
    method: action.method,
    target: action.target,
    reason: action.reason,
    details: action.details,
    request_id: action.requestId,
  });
}

/** Logs a change that was refused. A change that is made is logged in its transaction. */
export async function logRefusal(database: Cells, action: OperatorAction, outcome: string): Promise<void> {
  const { accountId = action.target.startsWith("acct_") ? action.target : "" } = action;
  const located = accountId || (action.target.startsWith("key_") ? action.target : "");
  const lane = located === "" ? NO_LANE : laneOfId(located);
  await database.at(lane).call("log_refusal", actionJson(action), lane, accountId, outcome);
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

function readEvents(cell: FunctionCaller, filter: EventFilter, before: EventPlace, limit: number) {
  return cell.call<EventRow>(
    "list_operator_events",
    filter.actorId,
    filter.method,
    filter.target,
    filter.accountId,
    filter.from ?? null,
    filter.to ?? null,
    before.created_micros,
    before.lane,
    before.seq,
    limit,
  );
}

/** Newest first. */
function compareEvents(one: EventPlace, other: EventPlace): number {
  if (one.created_micros !== other.created_micros) return one.created_micros > other.created_micros ? -1 : 1;
  return other.lane - one.lane || (one.seq > other.seq ? -1 : 1);
}
