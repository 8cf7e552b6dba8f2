import * as sql from "../../gen/sql/calls.ts";
import { type Action, type ChangedCells, onlyCell } from "../database/action.ts";
import { compareBytes, mergeCells } from "../database/cells/merge-cells.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { LaneMoved } from "../database/driver/store-error.ts";
import { DomainError } from "../domain/errors.ts";
import { LANE_COUNT, type Lane, laneOfId } from "../domain/lane.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";

/** Of an account, and of the operators together. */
const MAX_WEBHOOKS = 16;
/** A call redelivers no more events once it has this many. */
const ENOUGH_REDELIVERED = 10_000;
/** The events that one statement looks at. */
const EVENTS_PER_STATEMENT = 5_000;

export type WebhookRow = sql.WebhookView;

export type DeliveryRow = sql.ViewDeliveriesRow;

/** What a request can change, by the names in the database. */
export type WebhookChanges = {
  readonly url?: string;
  readonly description?: string;
  readonly types?: readonly string[];
  readonly state?: "enabled" | "paused";
};

/** Whether a webhook belongs to no account. */
export function isOfOperators(id: string): boolean {
  return id.startsWith("who_");
}

/** Webhooks of operators are in the lane after the last one, like everything that belongs to no account. */
function laneOf(id: string): Lane {
  return isOfOperators(id) ? LANE_COUNT : laneOfId(id);
}

function cellOf(database: Cells, lane: Lane): FunctionCaller {
  return lane === LANE_COUNT ? database.home : database.at(lane);
}

/** Where a caller changes a webhook: a key and a member in their account, operators anywhere. */
function placeOf({ actor: { accountId = "" } }: Action, id: string) {
  return { lane: accountId === "" ? laneOf(id) : laneOfId(accountId), accountId, id };
}

/** Waits for a change in a lane. Webhooks of operators are then copied to the other cells. */
async function copied<Result>(database: Cells, lane: Lane, change: Promise<Result>): Promise<Result> {
  const result = await change;
  if (lane === LANE_COUNT) await database.share();
  return result;
}

/** @param accountId empty for a webhook of operators */
export async function createWebhook(
  database: Cells,
  action: Action,
  accountId: string,
  webhook: Pick<WebhookRow, "id" | "url" | "description"> & { readonly types: readonly string[] },
): Promise<WebhookRow> {
  const lane = laneOf(webhook.id);
  const values = { ...webhook, types: webhook.types.join(","), max: MAX_WEBHOOKS };
  return await copied(database, lane, sql.createWebhook(database, action, { ...values, lane, accountId }));
}

/** @param accountId empty for the webhooks of operators */
export async function listWebhooks(database: Cells, accountId: string): Promise<WebhookRow[]> {
  const lane = accountId === "" ? LANE_COUNT : laneOfId(accountId);
  return await sql.viewWebhooks(cellOf(database, lane), { lane, accountId, id: "" });
}

/** @param accountId empty for a webhook of any account or of operators */
export async function getWebhook(database: Cells, accountId: string, id: string): Promise<WebhookRow> {
  const lane = laneOf(id);
  const [row] = await sql.viewWebhooks(cellOf(database, lane), { lane, accountId, id });
  if (!row) throw new DomainError("not_found", { message: `There is no webhook ${id}.` });
  return row;
}

export async function updateWebhook(database: Cells, action: Action, id: string, changes: WebhookChanges): Promise<WebhookRow> {
  const place = placeOf(action, id);
  const change = sql.updateWebhook(database, action, { ...place, changes: JSON.stringify(changes) });
  const [row] = await copied(database, place.lane, change);
  return row as WebhookRow;
}

export async function deleteWebhook(database: Cells, action: Action, id: string): Promise<void> {
  const place = placeOf(action, id);
  await copied(database, place.lane, sql.deleteWebhook(database, action, place));
}

export function rotateWebhook(database: Cells, action: Action, id: string, overlapSeconds: number): Promise<WebhookRow> {
  const place = placeOf(action, id);
  return copied(database, place.lane, sql.rotateWebhook(database, action, { ...place, overlapSeconds }));
}

export type WebhookToTest = sql.WebhookToTestRow;

export async function webhookToTest(database: Cells, action: Action, id: string): Promise<WebhookToTest> {
  const [row] = await sql.webhookToTest(database, action, placeOf(action, id));
  return row as WebhookToTest;
}

/**
 * A page of the deliveries of a webhook, the newest event first. Those of a webhook of operators are in all cells.
 *
 * @param state empty for all
 */
export async function listDeliveries(database: Cells, id: string, state: string, page: Page) {
  const [, micros = "0", eventId = ""] = /^(\d{1,16})_(evt_[0-9a-z]{26})$/.exec(page.after) ?? [];
  if (page.after !== "" && eventId === "") throw badToken();
  const read = (cell: FunctionCaller, last: DeliveryRow | undefined, limit: number) =>
    sql.viewDeliveries(cell, {
      webhookId: id,
      state,
      beforeMicros: last?.created_micros ?? BigInt(micros),
      beforeId: last?.event_id ?? eventId,
      limit,
    });
  const limit = page.size + 1;
  const rows = isOfOperators(id)
    ? await mergeCells<DeliveryRow>(database, limit, {
        read,
        compare: (one, other) => Number(other.created_micros - one.created_micros) || compareBytes(other.event_id, one.event_id),
        laneOf: ({ account_id: accountId }) => (accountId === "" ? LANE_COUNT : laneOfId(accountId)),
      })
    : await read(database.at(laneOfId(id)), undefined, limit);
  return cutPage(rows, page, (row) => `${row.created_micros}_${row.event_id}`);
}

/** The event, or the time, whose events a webhook receives again. */
export type Redelivery = { readonly eventId: string } | { readonly from: Date | undefined; readonly to: Date | undefined };

/** Returns the number of events, and whether there may be more of that time. */
export async function redeliver(
  database: Cells,
  action: Action,
  { id, account_id: accountId, types }: WebhookRow,
  redelivery: Redelivery,
): Promise<{ events: number; hasMore: boolean }> {
  const eventId = "eventId" in redelivery ? redelivery.eventId : "";
  const range = "from" in redelivery ? redelivery : {};
  const lane = isOfOperators(id) && eventId !== "" ? laneOfId(eventId) : laneOf(id);
  const what = { webhookId: id, types, lane, accountId, eventId, ...range, limit: EVENTS_PER_STATEMENT };
  const run = async (cells: ChangedCells, maxLane: Lane, isLogged: boolean): Promise<Redelivered> => {
    let events = 0;
    let last: sql.RedeliverRow | undefined;
    do {
      const after = { after: last?.last ?? 0n, afterId: last?.last_id ?? "" };
      [last] = await sql.redeliver(cells, action, { ...what, maxLane, ...after, isLogged: isLogged && !last });
      events += last?.renewed ?? 0;
    } while (last?.last && events < ENOUGH_REDELIVERED);
    return { events, hasMore: Boolean(last?.last) };
  };
  const results: Redelivered[] = [];
  if (isOfOperators(id)) {
    // One cell after the other: each change in another cell keeps a connection of the first one.
    for (const cell of database.all.keys()) results.push(await run(onlyCell(database, cell), lastLaneOf(cell), cell === 0));
  } else {
    results.push(await run(database, LANE_COUNT - 1, true));
  }
  const events = results.reduce((sum, result) => sum + result.events, 0);
  if (eventId !== "" && events === 0) throw new DomainError("not_found", { message: `There is no event ${eventId}.` });
  return { events, hasMore: results.some(({ hasMore }) => hasMore) };
}

type Redelivered = { readonly events: number; readonly hasMore: boolean };

/** The first cell also has the events that belong to no account. */
function lastLaneOf(cell: number): Lane {
  return cell === 0 ? LANE_COUNT : LANE_COUNT - 1;
}

/** An attempt that this server makes. */
export type Claim = sql.ClaimDeliveriesRow;

/** How many claims a server can take: of any kind, how many of these to endpoints that hang, and only to fast endpoints. */
export type Room = { readonly any: number; readonly hanging: number; readonly fast: number };

/** @param running the claims of this server, over all cells */
export function claimDeliveries(
  database: Pick<Cells, "all">,
  cell: number,
  room: Room,
  running: Iterable<Claim>,
): Promise<Claim[]> {
  const busy = [...running].map(({ webhook_id: id }) => id).filter(isOfOperators);
  return sql.claimDeliveries(database.all[cell] as FunctionCaller, {
    ...room,
    busy: `{${busy.join(",")}}`,
    maxLane: lastLaneOf(cell),
  });
}

/** The outcome of a claim. */
export type Attempt = {
  readonly claim: Claim;
  /** Undefined if the attempt was not made. */
  readonly outcome:
    | {
        readonly status: number | undefined;
        readonly latencyMs: number;
        readonly error: string;
        readonly answer: string;
        /** Undefined after the last attempt. */
        readonly retryMs: number | undefined;
        /** For how long the endpoint asked not to be called. */
        readonly pauseMs: number | undefined;
      }
    | undefined;
};

/**
 * Stores the outcomes and ends their claims, in the cells that own the lanes by now. An outcome of a lane that moved is dropped if its
 * cell does not answer: other outcomes must not wait for it, and the attempt is made again after its claim. Disables webhooks that are
 * gone or that accepted nothing for five days.
 *
 * @param cell where the attempts were claimed
 */
export async function storeAttempts(database: Cells, cell: number, attempts: readonly Attempt[]): Promise<void> {
  const list = attempts.map(({ claim, outcome }) => ({
    lane: claim.lane,
    webhook_id: claim.webhook_id,
    claim: String(claim.claim),
    revision: claim.revision,
    account_id: claim.account_id,
    seq: String(claim.seq),
    event_id: claim.event_id,
    ...(outcome && {
      attempt: claim.attempts + 1,
      status: outcome.status,
      latency_ms: outcome.latencyMs,
      error: outcome.error,
      answer: outcome.answer,
      retry_ms: outcome.retryMs,
      pause_ms: outcome.pauseMs,
    }),
  }));
  const store = (caller: FunctionCaller, given: readonly object[]) =>
    sql.storeAttempts(caller, { attempts: JSON.stringify(given) });
  const rows = await store(database.all[cell] as FunctionCaller, list).catch(async (error: unknown) => {
    if (!(error instanceof LaneMoved)) throw error;
    const stored = list.map((given) =>
      store(database.at(given.lane), [given]).catch((failure: unknown) => {
        if (database.owns(cell, given.lane)) throw failure;
        return [];
      }),
    );
    return (await Promise.all(stored)).flat();
  });
  for (const { webhook_id: id, revision, reason } of rows) {
    const lane = laneOf(id);
    await sql.disableWebhook(cellOf(database, lane), { lane, id, revision, reason });
    if (lane === LANE_COUNT) await database.share();
  }
}
