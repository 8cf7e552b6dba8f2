import { DomainError } from "../domain/errors.ts";
import { LANE_COUNT, type Lane, laneOfId } from "../domain/lane.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";
import { type Action, change, changeIn } from "./action.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";
import type { Parameter } from "./driver/connection.ts";
import { LaneMoved } from "./driver/store-error.ts";
import { compareBytes, mergeCells } from "./merge-cells.ts";

/** Of an account, and of the operators together. */
const MAX_WEBHOOKS = 16;
/** A call redelivers no more events once it has this many. */
const ENOUGH_REDELIVERED = 10_000;
/** The events that one statement looks at. */
const EVENTS_PER_STATEMENT = 5_000;

export type WebhookRow = {
  id: string;
  /** Empty for a webhook of operators. */
  account_id: string;
  url: string;
  description: string;
  /** Separated by commas; empty for all. */
  types: string;
  state: "enabled" | "paused" | "disabled";
  disabled_reason: string;
  created_at: Date;
  previous_expires_at: Date | null;
  /** Only of a new webhook, or after a rotation. */
  secret: string | null;
};

export type DeliveryRow = {
  event_id: string;
  account_id: string;
  seq: bigint;
  type: string;
  created_at: Date;
  created_micros: bigint;
  state: "pending" | "delivered" | "failed";
  attempts: number;
  due_at: Date | null;
  attempted_at: Date | null;
  status: number | null;
  latency_ms: number | null;
  error: string;
  answer: string;
  /** The event's, as JSON. */
  data: string;
};

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

/**
 * Calls a function that changes a webhook: keys and members change those of their account, operators all. Those of operators are copied to
 * the other cells.
 */
async function changeWebhook<Row>(
  database: Cells,
  name: string,
  action: Action,
  id: string,
  ...parameters: (string | number)[]
): Promise<Row> {
  const { accountId = "" } = action.actor;
  const lane = accountId === "" ? laneOf(id) : laneOfId(accountId);
  const rows = await change<Row>(database, lane, action, name, lane, accountId, id, ...parameters);
  if (lane === LANE_COUNT) await database.share();
  return rows[0] as Row;
}

/** @param accountId empty for a webhook of operators */
export async function createWebhook(
  database: Cells,
  action: Action,
  accountId: string,
  webhook: Pick<WebhookRow, "id" | "url" | "description"> & { readonly types: readonly string[] },
): Promise<WebhookRow> {
  const { id, url, description, types } = webhook;
  const lane = laneOf(id);
  const [row] = await change<WebhookRow>(
    database,
    lane,
    action,
    "create_webhook",
    lane,
    accountId,
    id,
    url,
    description,
    types.join(","),
    MAX_WEBHOOKS,
  );
  if (lane === LANE_COUNT) await database.share();
  return row as WebhookRow;
}

/** @param accountId empty for the webhooks of operators */
export async function listWebhooks(database: Cells, accountId: string): Promise<WebhookRow[]> {
  const lane = accountId === "" ? LANE_COUNT : laneOfId(accountId);
  return await cellOf(database, lane).call<WebhookRow>("view_webhooks", lane, accountId, "");
}

/** @param accountId empty for a webhook of any account or of operators */
export async function getWebhook(database: Cells, accountId: string, id: string): Promise<WebhookRow> {
  const lane = laneOf(id);
  const [row] = await cellOf(database, lane).call<WebhookRow>("view_webhooks", lane, accountId, id);
  if (!row) throw new DomainError("not_found", { message: `There is no webhook ${id}.` });
  return row;
}

export function updateWebhook(database: Cells, action: Action, id: string, changes: WebhookChanges): Promise<WebhookRow> {
  return changeWebhook(database, "update_webhook", action, id, JSON.stringify(changes));
}

export async function deleteWebhook(database: Cells, action: Action, id: string): Promise<void> {
  await changeWebhook(database, "delete_webhook", action, id);
}

export function rotateWebhook(database: Cells, action: Action, id: string, overlapSeconds: number): Promise<WebhookRow> {
  return changeWebhook(database, "rotate_webhook", action, id, overlapSeconds);
}

export type WebhookToTest = { readonly account_id: string; readonly url: string; readonly secrets: string };

export function webhookToTest(database: Cells, action: Action, id: string): Promise<WebhookToTest> {
  return changeWebhook(database, "webhook_to_test", action, id);
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
    cell.call<DeliveryRow>(
      "view_deliveries",
      id,
      state,
      last?.created_micros ?? BigInt(micros),
      last?.event_id ?? eventId,
      limit,
    );
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
  const { from = null, to = null } = "from" in redelivery ? redelivery : {};
  const lane = isOfOperators(id) && eventId !== "" ? laneOfId(eventId) : laneOf(id);
  type Send = (...parameters: Parameter[]) => Promise<RedeliverRow[]>;
  const run = async (send: Send, maxLane: Lane, isLogged: boolean): Promise<Redelivered> => {
    let events = 0;
    let last: RedeliverRow | undefined;
    do {
      const place = [last?.last ?? 0n, last?.last_id ?? "", EVENTS_PER_STATEMENT];
      [last] = await send(id, types, lane, accountId, eventId, from, to, maxLane, ...place, isLogged && !last);
      events += last?.renewed ?? 0;
    } while (last?.last && events < ENOUGH_REDELIVERED);
    return { events, hasMore: Boolean(last?.last) };
  };
  const results: Redelivered[] = [];
  if (isOfOperators(id)) {
    // One cell after the other: each change in another cell keeps a connection of the first one.
    for (const cell of database.all.keys()) {
      const send: Send = (...given) => changeIn(database, cell, action, "redeliver", ...given);
      results.push(await run(send, lastLaneOf(cell), cell === 0));
    }
  } else {
    const send: Send = (...given) => change(database, lane, action, "redeliver", ...given);
    results.push(await run(send, LANE_COUNT - 1, true));
  }
  const events = results.reduce((sum, result) => sum + result.events, 0);
  if (eventId !== "" && events === 0) throw new DomainError("not_found", { message: `There is no event ${eventId}.` });
  return { events, hasMore: results.some(({ hasMore }) => hasMore) };
}

type Redelivered = { readonly events: number; readonly hasMore: boolean };

type RedeliverRow = {
  readonly renewed: number;
  readonly last: bigint | null;
  readonly last_id: string | null;
};

/** The first cell also has the events that belong to no account. */
function lastLaneOf(cell: number): Lane {
  return cell === 0 ? LANE_COUNT : LANE_COUNT - 1;
}

/** An attempt that this server makes. */
export type Claim = {
  readonly lane: Lane;
  readonly webhook_id: string;
  readonly claim: bigint;
  readonly is_fast_only: boolean;
  readonly is_hanging: boolean;
  readonly account_id: string;
  readonly seq: bigint;
  readonly event_id: string;
  readonly type: string;
  readonly created_at: Date;
  /** JSON. */
  readonly data: string;
  /** The number of earlier attempts. */
  readonly attempts: number;
  readonly url: string;
  readonly secrets: string;
  /** Of the webhook: the outcome counts only for it. */
  readonly revision: number;
};

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
  return (database.all[cell] as FunctionCaller).call<Claim>(
    "claim_deliveries",
    room.any,
    room.hanging,
    room.fast,
    `{${busy.join(",")}}`,
    lastLaneOf(cell),
  );
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
    caller.call<{ webhook_id: string; revision: number; reason: string }>("store_attempts", JSON.stringify(given));
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
    await cellOf(database, lane).call("disable_webhook", lane, id, revision, reason);
    if (lane === LANE_COUNT) await database.share();
  }
}
