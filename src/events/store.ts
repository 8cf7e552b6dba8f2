import * as sql from "../../gen/sql/calls.ts";
import { compareBytes, mergeCells } from "../database/cells/merge-cells.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import { millisecondsOfId } from "../domain/ids.ts";
import { LANE_COUNT, laneOfId } from "../domain/lane.ts";
import { badToken, cutPage, type Page } from "../domain/page.ts";

export type EventRow = sql.EventView;

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
  return await sql.eventPosition(database.at(lane), { lane, accountId, after, at, days });
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
  const isNewestFirst = !("after" in place);
  const range = { position: isNewestFirst ? place.before : place.after, isNewestFirst, limit };
  return await sql.listEvents(database.at(lane), { lane, accountId, types: types.join(","), ...range });
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
    read: (cell, last, limit) => {
      const before = { beforeMicros: last?.created_micros ?? BigInt(micros), beforeId: last?.id ?? id };
      return sql.listAllEvents(cell, { types: types.join(","), ...before, limit });
    },
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
    const seconds = await sql.reportDepleted(this.#database.at(lane), { lane, accountId, requiredMicros });
    this.#until.delete(accountId);
    this.#until.set(accountId, this.#now() + 1_000 * seconds);
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
      for (const key of await sql.expiringKeys(this.#cell, { limit: KEYS_PER_ROUND })) await sql.warnOfExpiry(this.#cell, key);
    }
    if (!isRound && !this.#hasOldEvents) return;
    const deleted = await sql.sweepEvents(this.#cell, { days: this.#days, limit: DELETED_AT_ONCE });
    this.#hasOldEvents = deleted === DELETED_AT_ONCE;
  }
}
