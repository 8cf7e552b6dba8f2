import * as sql from "../../gen/sql/calls.ts";
import { failureItem, failureMinute } from "../database/driver/batcher.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import { type Ids, lowestIdAt, millisecondsOfId } from "../domain/ids.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import { badToken, type Page, pageUpTo } from "../domain/page.ts";
import { QUARTER_MS } from "../domain/periods.ts";

/** A metered call that ended with an error and has no ledger row. */
export type FailedCall = {
  readonly accountId: string;
  readonly keyId: string;
  /** "POST /v1/generate", or "vx.v1.GenerateService/Generate" in other protocols than REST. */
  readonly method: string;
  /** Empty if the call was refused before its model was known. */
  readonly model: string;
  /** Empty if none received the request. */
  readonly upstream: string;
  /** That of REST. */
  readonly status: number;
  readonly code: string;
  /** What the caller got. */
  readonly message: string;
  readonly latencyMs: number;
  readonly requestId: string;
};

/** Stored calls of an account and minute, over all servers. */
const MAX_PER_MINUTE = 600;
/** Limit the memory: a call takes about 1 KB. */
const MAX_WAITING = 8_192;
const MAX_MINUTES = 16_384;
const MAX_MESSAGE_CHARACTERS = 500;

const PAUSE_MS = 1_000;
/** Keeps a statement to a few tens of milliseconds. */
const MAX_BATCH = 1_024;
/** How often a batch is sent that the database cannot store now. */
const MAX_TRIES = 30;

/** Why a failed call is only counted: its minute is full, too many wait, or the database could not store it. */
export type OmissionCause = "minute" | "queue" | "database";

type RecorderOptions = {
  readonly database: Cells;
  readonly ids: Pick<Ids, "failure">;
  readonly onOmitted: (cause: OmissionCause, calls: number) => void;
  readonly onFailure: (error: unknown) => void;
};

type Call = { readonly id: string; readonly call: FailedCall };

/** A minute of an account. */
type Minute = {
  readonly lane: Lane;
  readonly accountId: string;
  readonly minute: number;
  waiting: Call[];
  /** Of this server, also those that are stored. */
  calls: number;
  /** Calls that are counted, and not sent yet. */
  omitted: number;
  tries: number;
};

/** Stores failed calls once a second, in batches. Nothing waits for it, and a queue that is full only counts. */
export class FailureRecorder {
  readonly #options: RecorderOptions;
  readonly #minutes = new Map<string, Minute>();
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  record(call: FailedCall): void {
    const lane = laneOfId(call.accountId);
    const id = this.#options.ids.failure(lane);
    const minute = Math.floor(millisecondsOfId(id) / 60_000);
    const name = `${minute} ${call.accountId}`;
    let entry = this.#minutes.get(name);
    if (!entry) {
      if (this.#minutes.size >= MAX_MINUTES) {
        this.#options.onOmitted("queue", 1);
        return;
      }
      const { accountId } = call;
      entry = { lane, accountId, minute, waiting: [], calls: 0, omitted: 0, tries: 0 };
      this.#minutes.set(name, entry);
    }
    this.#timer ??= setTimeout(() => void this.flush(), PAUSE_MS).unref();
    if (entry.calls >= MAX_PER_MINUTE || this.#waiting >= MAX_WAITING) {
      entry.omitted++;
      this.#options.onOmitted(entry.calls >= MAX_PER_MINUTE ? "minute" : "queue", 1);
      return;
    }
    entry.calls++;
    entry.waiting.push({ id, call });
    this.#waiting++;
  }

  /** Resolves after one attempt to store all recorded calls. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending = this.#sending.then(() => this.#send());
    return this.#sending;
  }

  async #send(): Promise<void> {
    const { database } = this.#options;
    const minutes = [...this.#minutes.values()].filter(hasNews);
    const cellOf = ({ lane }: Minute) => database.all.findIndex((_, cell) => database.owns(cell, lane));
    await Promise.all(
      [...Map.groupBy(minutes, cellOf)].map(async ([cell, own]) => {
        for (const batch of batchesOf(own)) await this.#store(database.all[cell], batch);
      }),
    );
    // One without news would only limit the rest of its minute, which the database does as well.
    for (const [name, entry] of this.#minutes) if (!hasNews(entry)) this.#minutes.delete(name);
    if (this.#minutes.size > 0) this.#timer ??= setTimeout(() => void this.flush(), PAUSE_MS).unref();
  }

  /** The cell is undefined if none owns the lanes now. */
  async #store(cell: FunctionCaller | undefined, minutes: readonly Minute[]): Promise<void> {
    const { onOmitted, onFailure } = this.#options;
    const sent = minutes.map((entry) => {
      const { waiting, omitted } = entry;
      Object.assign(entry, { waiting: [], omitted: 0, tries: entry.tries + 1 });
      return { entry, waiting, omitted };
    });
    try {
      if (!cell) throw new DomainError("unavailable");
      const [row] = await sql.recordFailures(cell, { ...parametersOf(sent), max: MAX_PER_MINUTE });
      for (const { entry, waiting } of sent) {
        entry.tries = 0;
        this.#waiting -= waiting.length;
      }
      if (row && row.refused > 0n) onOmitted("minute", Number(row.refused));
    } catch (error) {
      onFailure(error);
      for (const { entry, waiting, omitted } of sent) {
        if (entry.tries < MAX_TRIES && isTemporary(error)) {
          entry.waiting = [...waiting, ...entry.waiting];
          entry.omitted += omitted;
        } else {
          this.#waiting -= waiting.length;
          onOmitted("database", waiting.length + omitted);
        }
      }
    }
  }
}

function hasNews({ waiting, omitted }: Minute): boolean {
  return waiting.length > 0 || omitted > 0;
}

function* batchesOf(minutes: readonly Minute[]): Generator<readonly Minute[]> {
  let batch: Minute[] = [];
  let size = 0;
  for (const entry of minutes) {
    batch.push(entry);
    size += 1 + entry.waiting.length;
    if (size < MAX_BATCH) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}

type Sent = { readonly entry: Minute; readonly waiting: readonly Call[]; readonly omitted: number };

function parametersOf(sent: readonly Sent[]): { minutes: string; calls: string } {
  const minutes = sent.map(({ entry: { lane, accountId, minute }, waiting, omitted }) => {
    const at = minute * 60_000;
    const id = lowestIdAt(PREFIX, at);
    return { lane, account_id: accountId, id, at_ms: at, calls: waiting.length, omitted };
  });
  const calls = sent.flatMap(({ waiting }, n) =>
    waiting.map(({ id, call }, i) => ({
      minute: n + 1,
      later: waiting.length - 1 - i,
      id,
      at_ms: millisecondsOfId(id),
      key_id: call.keyId,
      method: call.method,
      model: call.model,
      upstream: call.upstream,
      status: call.status,
      code: call.code,
      message: storable(call.message),
      latency_ms: call.latencyMs,
      request_id: call.requestId,
    })),
  );
  return { minutes: failureMinute.arrayOf(minutes), calls: failureItem.arrayOf(calls) };
}

/** PostgreSQL accepts neither NUL nor half of a surrogate pair. */
function storable(text: string): string {
  return text.slice(0, MAX_MESSAGE_CHARACTERS).replaceAll("\0", "\ufffd").toWellFormed();
}

function isTemporary(error: unknown): boolean {
  return error instanceof DomainError && (error.reason === "unavailable" || error.reason === "overloaded");
}

export type FailureFilter = {
  readonly keyId: string;
  readonly model: string;
  readonly code: string;
  readonly from: Date | undefined;
  readonly to: Date | undefined;
};

/** A failed call; in the row of a minute, which has nothing else, `omitted` is how many of its calls are not stored. */
export type FailureRow = sql.FailureView;

/** Rows that one page with filters reads at most. Indexes for the filters would make each refused call slower. */
const MAX_READ = 20_000;

/** A page of the failed calls that match the filters, newest first. */
export async function listFailures(
  database: Cells,
  accountId: string,
  { keyId, model, code, from, to }: FailureFilter,
  page: Page,
  maxRead = MAX_READ,
) {
  if (page.after !== "" && !ID.test(page.after)) throw badToken();
  const lane = laneOfId(accountId);
  const first = from ? lowestIdAt(PREFIX, from.getTime()) : "";
  const end = page.after || (to ? lowestIdAt(PREFIX, to.getTime()) : HIGHEST_ID);
  const cell = database.at(lane);
  let low: string | null = null;
  if (keyId !== "" || model !== "" || code !== "")
    low = await sql.failuresPiece(cell, { lane, accountId, first, end, rows: maxRead });
  const range = { first: low ?? first, end, max: MAX_PER_MINUTE, limit: page.size + 1 };
  const rows = await sql.listFailures(cell, { lane, accountId, keyId, model, code, ...range });
  return pageUpTo(rows, page, ({ id }) => id, low ?? undefined);
}

/** More rows are not counted: reading these takes a few hundred milliseconds. A quarter of an hour has at most 9,015. */
const MAX_COUNTED = 100_000;

export type FailureCount = { readonly start: Date; readonly code: string; readonly calls: bigint };

/**
 * How many calls ended with each error in each period, and the time from which calls are counted: a quarter of an hour, so that
 * the next request can end there.
 */
export async function countFailures(
  database: Cells,
  accountId: string,
  { keyId, model }: Pick<FailureFilter, "keyId" | "model">,
  { starts, end }: { readonly starts: readonly Date[]; readonly end: Date },
  maxCounted = MAX_COUNTED,
): Promise<{ counts: FailureCount[]; countedFrom: Date }> {
  const lane = laneOfId(accountId);
  const cell = database.at(lane);
  let from = starts[0] ?? end;
  const range = { first: lowestIdAt(PREFIX, from.getTime()), end: lowestIdAt(PREFIX, end.getTime()) };
  const piece = await sql.failuresPiece(cell, { lane, accountId, ...range, rows: maxCounted + 1 });
  if (piece) from = new Date(Math.ceil((millisecondsOfId(piece) + 1) / QUARTER_MS) * QUARTER_MS);
  const rows = await sql.countFailures(cell, {
    lane,
    accountId,
    keyId,
    model,
    first: lowestIdAt(PREFIX, from.getTime()),
    end: range.end,
    max: MAX_PER_MINUTE,
    starts: `{${starts.map((start) => start.toISOString()).join(",")}}`,
  });
  const counts = rows.map(({ period, code, calls }) => ({ start: starts[period] ?? from, code, calls }));
  return { counts, countedFrom: from };
}

const PREFIX = "fail";
const ID = /^fail_[0-9a-hjkmnp-tv-z]{26}$/;
const HIGHEST_ID = `${PREFIX}_${"z".repeat(26)}`;

const CHECKS_PER_SWEEP = 60;
const MAX_SWEPT = 10_000;

/** Deletes old failed calls of one cell. */
export class FailureUpkeep {
  readonly #cell: FunctionCaller;
  readonly #days: number;
  #checks = 0;

  /** @param days for how long failed calls are kept */
  constructor(cell: FunctionCaller, days: number) {
    this.#cell = cell;
    this.#days = days;
  }

  /** Called every second: sweeps once a minute, and at each call while more are left. */
  async maintain(): Promise<void> {
    if (this.#checks++ % CHECKS_PER_SWEEP !== 0) return;
    const deleted = await sql.sweepFailures(this.#cell, { days: this.#days, limit: MAX_SWEPT });
    if (deleted === MAX_SWEPT) this.#checks = 0;
  }
}
