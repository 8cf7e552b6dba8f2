import { DomainError } from "../domain/errors.ts";
import { millisecondsOfId } from "../domain/ids.ts";
import { LANE_COUNT, type Lane, laneOfId } from "../domain/lane.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";
import type { Cells, FunctionCaller } from "./driver/cells.ts";
import { compareBytes, mergeCells } from "./merge-cells.ts";

export type EventRow = {
  id: string;
  /** Empty for an event that concerns no account. */
  account_id: string;
  seq: bigint;
  type: string;
  created_at: Date;
  created_micros: bigint;
  /** JSON. */
  data: string;
};

/** Of the year 9999, which PostgreSQL reads. An id can have a later one. */
const MAX_TIME_MS = Date.UTC(9999, 11, 31);

/**
 * The number of the last event that a reader knows.
 *
 * @param after the id of the event; empty for none, "now" for all events until now
 * @param days for how long events are kept
 */
export async function eventPosition(database: Cells, accountId: string, after: string, days: number): Promise<bigint> {
  if (after === "") return 0n;
  if (after !== "now" && !/^evt_[0-9a-hjkmnp-tv-z]{26}$/.test(after))
    throw DomainError.ofField("after", 'must be the id of an event: "evt_…", or "now"');
  const lane = laneOfId(accountId);
  const at = after === "now" ? null : new Date(Math.min(millisecondsOfId(after), MAX_TIME_MS));
  const [row] = await database.at(lane).call<{ event_position: bigint }>("event_position", lane, accountId, after, at, days);
  return row?.event_position ?? 0n;
}

/** Events of an account: oldest first after a number, or newest first before it. */
export async function listEvents(
  database: Cells,
  accountId: string,
  types: readonly string[],
  place: { readonly after: bigint } | { readonly before: bigint | undefined },
  limit: number,
): Promise<EventRow[]> {
  const lane = laneOfId(accountId);
  const position = "after" in place ? [place.after, false] : [place.before ?? null, true];
  return await database.at(lane).call<EventRow>("list_events", lane, accountId, types.join(","), ...position, limit);
}

/** A page of the events of one account, newest first. */
export async function listLatestEvents(database: Cells, accountId: string, types: readonly string[], page: Page) {
  if (!/^\d{0,18}$/.test(page.after)) throw badToken();
  const before = page.after === "" ? undefined : BigInt(page.after);
  const rows = await listEvents(database, accountId, types, { before }, page.size + 1);
  return cutPage(rows, page, ({ seq }) => seq.toString());
}

/** A page of the events of all accounts, newest first. */
export async function listAllEvents(database: Cells, types: readonly string[], page: Page) {
  const [, micros = "0", id = ""] = /^(\d{1,16})_(evt_[0-9a-z]{26})$/.exec(page.after) ?? [];
  if (page.after !== "" && id === "") throw badToken();
  const rows = await mergeCells<EventRow>(database, page.size + 1, {
    read: (cell, last, limit) =>
      cell.call("list_all_events", types.join(","), last?.created_micros ?? BigInt(micros), last?.id ?? id, limit),
    compare: (one, other) => Number(other.created_micros - one.created_micros) || compareBytes(other.id, one.id),
    laneOf: ({ account_id }) => (account_id === "" ? LANE_COUNT : laneOfId(account_id)),
  });
  return cutPage(rows, page, (row) => `${row.created_micros}_${row.id}`);
}

const MAX_REPORTED = 10_000;

/** Reports calls that were refused because the balance is too low, at most once per hour and account. */
export class DepletionReports {
  readonly #database: Cells;
  readonly #now: () => number;
  /** For each account, until when a report has no effect, in the order of the reports. */
  readonly #until = new Map<string, number>();

  /** @param now a monotonic clock in milliseconds */
  constructor(database: Cells, now: () => number) {
    this.#database = database;
    this.#now = now;
  }

  async report(accountId: string, requiredMicros: bigint): Promise<void> {
    if ((this.#until.get(accountId) ?? 0) > this.#now()) return;
    const lane = laneOfId(accountId);
    const [row] = await this.#database
      .at(lane)
      .call<{ report_depleted: number }>("report_depleted", lane, accountId, requiredMicros);
    this.#until.delete(accountId);
    this.#until.set(accountId, this.#now() + 1_000 * (row?.report_depleted ?? 0));
    const [oldest] = this.#until.keys();
    if (this.#until.size > MAX_REPORTED && oldest !== undefined) this.#until.delete(oldest);
  }
}

const CHECKS_PER_ROUND = 60;
const KEYS_PER_ROUND = 1_000;
const DELETED_AT_ONCE = 10_000;

/** Writes the events of keys that expire soon, and deletes old events, of one cell. */
export class EventUpkeep {
  readonly #cell: FunctionCaller;
  readonly #days: number;
  #checks = 0;
  #hasOldEvents = false;

  /** @param days for how long events are kept */
  constructor(cell: FunctionCaller, days: number) {
    this.#cell = cell;
    this.#days = days;
  }

  /** Called every second: works once in a minute, and until no old events are left. */
  async maintain(): Promise<void> {
    const isRound = this.#checks++ % CHECKS_PER_ROUND === 0;
    if (isRound) {
      const keys = await this.#cell.call<{ lane: Lane; id: string }>("expiring_keys", KEYS_PER_ROUND);
      for (const { lane, id } of keys) await this.#cell.call("warn_of_expiry", lane, id);
    }
    if (!isRound && !this.#hasOldEvents) return;
    const [row] = await this.#cell.call<{ sweep_events: number }>("sweep_events", this.#days, DELETED_AT_ONCE);
    this.#hasOldEvents = row?.sweep_events === DELETED_AT_ONCE;
  }
}
