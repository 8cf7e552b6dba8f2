import * as sql from "../../gen/sql/calls.ts";
import { CellBatchers, type CellTurns } from "../database/driver/batcher.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import type { DatabaseClock } from "../database/driver/database-clock.ts";
import { isRefusedWrite, NotSent } from "../database/driver/store-error.ts";
import { DomainError } from "../domain/errors.ts";
import { entryIdOf, monthOfId } from "../domain/ids.ts";
import { assertInvariant, InvariantViolation } from "../domain/invariant.ts";
import { laneOfId } from "../domain/lane.ts";
import type { EntryRow } from "../ledger/store.ts";
import {
  assertCharged,
  assertEnd,
  assertHold,
  type BillItem,
  type BillResult,
  bill,
  type EndOutcome,
  type EndRequest,
  type HoldOutcome,
  type HoldRequest,
  type OpenHold,
  quoteHold,
} from "./bill-statement.ts";

type BillingOptions = {
  readonly serverId: string;
  /** Per cell. */
  readonly pipelines: number;
  /** Per cell. */
  readonly maxWaiting: number;
  /** One per cell. */
  readonly clocks: readonly DatabaseClock[];
  readonly turns?: CellTurns | undefined;
  readonly onBatch?: (size: number) => void;
};

/** Keeps a batch to some tens of milliseconds. */
const MAX_BATCH = 512;
/** Stored responses can be long. */
const MAX_BATCH_CHARACTERS = 2_097_152;

/**
 * Places and ends holds in batches: all items that arrive meanwhile share one round trip and one disk flush.
 */
export class Billing {
  readonly #database: Cells;
  readonly #options: BillingOptions;
  readonly #batchers: CellBatchers<BillItem, BillResult>;
  readonly #openHolds = new Map<string, OpenHold>();

  constructor(database: Cells, options: BillingOptions) {
    this.#database = database;
    this.#options = options;
    this.#batchers = new CellBatchers(database, {
      ...options,
      maxBatch: MAX_BATCH,
      weight: { of: (item) => (item.kind === "end" ? (item.end.charge?.answer?.length ?? 0) : 0), max: MAX_BATCH_CHARACTERS },
      execute: (cell, items, index) => this.#billAll(cell, options.clocks[index] as DatabaseClock, items),
    });
  }

  get depth(): number {
    return this.#batchers.depth;
  }

  /** Whether this process may still have to end the hold. Any other hold of this server is abandoned. */
  isOpen(generationId: string): boolean {
    return this.#openHolds.has(generationId);
  }

  async hold(hold: HoldRequest): Promise<HoldOutcome> {
    const { generationId } = hold;
    const lane = laneOfId(hold.accountId);
    assertHold(hold, this.#openHolds.get(generationId));
    this.#openHolds.set(generationId, { amountMicros: hold.amountMicros, charge: undefined });
    try {
      const result = (await this.#batchers.submit(lane, { kind: "hold", lane, hold })) as HoldOutcome;
      if (result.outcome !== "held") this.#openHolds.delete(generationId);
      return result;
    } catch (error) {
      // After any other error the hold may exist, so it stays open until it is ended.
      if (error instanceof DomainError && error.reason === "overloaded") this.#openHolds.delete(generationId);
      throw error;
    }
  }

  async end(end: EndRequest): Promise<EndOutcome> {
    const lane = laneOfId(end.accountId);
    const open = this.#openHolds.get(end.generationId);
    assertEnd(end, open);
    if (open) open.charge ??= end.charge;
    const result = (await this.#batchers.submit(lane, { kind: "end", lane, end })) as EndOutcome;
    const outcome = result.outcome === "missing" ? await this.#earlierOutcome(end) : result;
    this.#openHolds.delete(end.generationId);
    return outcome;
  }

  /** What would happen to a hold. */
  quoteHold(hold: HoldRequest): Promise<HoldOutcome> {
    return quoteHold(this.#database.at(laneOfId(hold.accountId)), hold);
  }

  /** The ledger row of a generation. */
  async findEntry(accountId: string, generationId: string): Promise<EntryRow | undefined> {
    const id = entryIdOf(generationId);
    const lane = laneOfId(accountId);
    const [row] = await sql.getEntry(this.#database.at(lane), { lane, accountId, id, month: monthOfId(id) });
    return row;
  }

  /** An earlier attempt may have settled the hold although its result was lost. */
  async #earlierOutcome(end: EndRequest): Promise<EndOutcome> {
    const entry = await this.findEntry(end.accountId, end.generationId);
    if (!entry) return { outcome: "missing" };
    const balanceMicros = entry.balance_after_micros;
    const chargedMicros = -entry.amount_micros;
    assertCharged(end, chargedMicros, balanceMicros);
    return { outcome: "settled", balanceMicros, chargedMicros };
  }

  /**
   * One invalid item must not fail the others: the batch is split until the invalid item is alone. Each part
   * is a statement of its own, so its error applies only to its own items.
   */
  async #billAll(
    cell: FunctionCaller,
    clock: DatabaseClock,
    items: readonly BillItem[],
  ): Promise<readonly (BillResult | DomainError)[]> {
    const { serverId } = this.#options;
    try {
      return await bill(cell, { serverId, clock }, items);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (isRefusedWrite(error)) return await this.#billWithoutCharges(cell, clock, items, error);
      if (items.length === 1 || !isInvalidData(error)) return items.map(() => error);
      const half = Math.ceil(items.length / 2);
      const first = await this.#billAll(cell, clock, items.slice(0, half));
      return [...first, ...(await this.#billAll(cell, clock, items.slice(half)))];
    }
  }

  /** A full disk has no space for the ledger rows of charges, but may have it for releases and holds. */
  async #billWithoutCharges(
    cell: FunctionCaller,
    clock: DatabaseClock,
    items: readonly BillItem[],
    error: DomainError,
  ): Promise<readonly (BillResult | DomainError)[]> {
    const others = items.filter((item) => !isCharge(item));
    if (others.length === 0 || others.length === items.length) return items.map(() => error);
    const results = await this.#billAll(cell, clock, others);
    let next = 0;
    return items.map((item) => (isCharge(item) ? error : (results[next++] ?? error)));
  }
}

function isCharge(item: BillItem): boolean {
  return item.kind === "end" && item.end.charge !== undefined;
}

/** SQLSTATE classes of errors that come from a value or a broken rule, not from the state of the database. */
function isInvalidData(error: DomainError): boolean {
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return typeof code === "string" && /^(22|23|P0)/.test(code);
}

/** The stored response of the first call with an idempotency key. It may be long, so vx.bill does not return it. */
export async function findAnswer(database: Cells, accountId: string, idempotencyKey: string): Promise<string | undefined> {
  const lane = laneOfId(accountId);
  const [row] = await sql.getAnswer(database.at(lane), { lane, accountId, idempotencyKey });
  return row?.answer;
}

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** How long a caller waits for a charge while the database refuses to write. */
const MAX_REFUSED_MS = 10_000;
/** After `limitRetries`, how long attempts may still be started. */
export const MAX_SETTLE_MS = 60_000;

type SettlerOptions = {
  readonly billing: Pick<Billing, "end">;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
  /** Called once per hold, when the first attempt fails. */
  readonly onRetry: (end: EndRequest, error: unknown) => void;
  /** Called when a hold is released instead of charged, because the database refused the charge. */
  readonly onRefusal: (end: EndRequest, error: unknown) => void;
  /** Called when no attempt succeeded before the limit that `limitRetries` sets. */
  readonly onFailure: (end: EndRequest, error: unknown) => void;
};

/**
 * Ends holds. Ending a hold is idempotent, so any error is retried until the database reports that the hold
 * is settled or missing: temporary failures must not lose a charge. Only a violated invariant is not retried.
 */
export class Settler {
  readonly #options: SettlerOptions;
  #retryUntil = Number.POSITIVE_INFINITY;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  /** Releases a hold that may not have been placed. If it is placed later, a heartbeat releases it. */
  async abandon({ generationId, accountId }: Pick<EndRequest, "generationId" | "accountId">): Promise<void> {
    await this.end({ generationId, accountId, charge: undefined });
  }

  /**
   * @param giveUp returns an error to the caller, who pays nothing; undefined if output was delivered. It is called once
   * the database has refused the ending for ten seconds, and from then on the hold is released. It is never called after an
   * attempt whose outcome is unknown, because that attempt may have charged.
   */
  end(end: EndRequest, giveUp?: (error: unknown) => void): Promise<EndOutcome> {
    return this.#options.billing.end(end).catch((error: unknown) => this.#retry(end, error, giveUp));
  }

  async #retry(wanted: EndRequest, firstError: unknown, giveUp: ((error: unknown) => void) | undefined): Promise<EndOutcome> {
    const { billing, now, wait, onRetry, onRefusal, onFailure } = this.#options;
    const refusals = new Refusals(now);
    let end = wanted;
    let isGivenUp = false;
    let error = firstError;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      if (error instanceof InvariantViolation) throw error;
      if (giveUp && !isGivenUp && refusals.areTooMany(error)) {
        isGivenUp = true;
        giveUp(error);
        if (end.charge) onRefusal(end, error);
        end = { ...end, charge: undefined };
      }
      if (now() + pauseMs > this.#retryUntil) {
        // The caller got an error, so nothing is lost.
        if (!isGivenUp) onFailure(end, error);
        throw error;
      }
      if (pauseMs === FIRST_PAUSE_MS) onRetry(end, error);
      await wait(pauseMs);
      try {
        const ended = await billing.end(end);
        assertInvariant(!isGivenUp || ended.outcome !== "settled", "a refused charge is not made later", {
          hold: end.generationId,
          outcome: ended.outcome,
        });
        return ended;
      } catch (other) {
        error = other;
      }
    }
  }

  /** Limits the time for all attempts, because the process is about to exit. */
  limitRetries(): void {
    this.#retryUntil = this.#options.now() + MAX_SETTLE_MS;
  }
}

/** The refused attempts to end a hold. */
class Refusals {
  readonly #now: () => number;
  #since: number | undefined;
  /** Whether an attempt may have succeeded, or may still succeed. */
  #isUncertain = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Records the error of an attempt; true if the attempts were refused for too long. */
  areTooMany(error: unknown): boolean {
    if (isRefusedWrite(error)) this.#since ??= this.#now();
    else if (!isUnsent(error)) this.#isUncertain = true;
    return !this.#isUncertain && this.#since !== undefined && this.#now() - this.#since >= MAX_REFUSED_MS;
  }
}

function isUnsent(error: unknown): boolean {
  return error instanceof NotSent || (error instanceof DomainError && error.reason === "overloaded");
}
