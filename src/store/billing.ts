import { DomainError } from "../domain/errors.ts";
import { entryIdOf, monthOfId } from "../domain/ids.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { entryItem, holdItem } from "./batch-items.ts";
import { Batcher } from "./driver/batcher.ts";
import type { Database } from "./driver/database.ts";
import type { DatabaseClock } from "./driver/database-clock.ts";
import type { EntryRow } from "./ledger.ts";

/** Reserves the most a generation can cost. */
export type HoldRequest = {
  readonly holdId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly amountMicros: Micros;
  /** After this time any server may release the hold. */
  readonly seconds: number;
  readonly idempotency: { readonly key: string; readonly digest: string } | undefined;
};

export type HoldOutcome =
  | { readonly outcome: "held" | "revoked" | "running" | "reused" }
  | { readonly outcome: "insufficient"; readonly balanceMicros: Micros; readonly heldMicros: Micros }
  | { readonly outcome: "answered"; readonly answer: string };

/** Ends a hold: with a charge, or without one. */
export type EndRequest = {
  readonly holdId: string;
  readonly accountId: string;
  readonly charge: Charge | undefined;
};

export type Charge = {
  readonly amountMicros: Micros;
  readonly reason: string;
  readonly requestId: string;
  readonly keyId: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly inputPrice: Micros;
  readonly outputPrice: Micros;
  /** The response for a later call with the same idempotency key. */
  readonly answer: string | undefined;
};

export type EndOutcome =
  | { readonly outcome: "settled"; readonly balanceMicros: Micros; readonly chargedMicros: Micros }
  /** "released": ended now, without a charge. "gone": ended earlier, without a charge. */
  | { readonly outcome: "released" | "gone" };

type Item =
  | { readonly kind: "hold"; readonly lane: Lane; readonly hold: HoldRequest }
  | { readonly kind: "end"; readonly lane: Lane; readonly end: EndRequest };

type Result = HoldOutcome | EndOutcome;

type BillingOptions = {
  readonly serverId: string;
  readonly pipelines: number;
  readonly maxWaiting: number;
  readonly clock: DatabaseClock;
  readonly onBatch?: (size: number) => void;
};

/** Keeps a batch to some tens of milliseconds. */
const MAX_BATCH = 512;
/** Stored responses can be long. */
const MAX_BATCH_CHARACTERS = 2_097_152;
/** Latest start of a statement. After that the server may have timed out waiting for it. */
const START_WITHIN_MS = 5_000;

/**
 * Places and ends holds in batches: all items that arrive meanwhile share one round trip and one disk flush.
 */
export class Billing {
  readonly #database: Database;
  readonly #options: BillingOptions;
  readonly #batcher: Batcher<Item, Result>;
  readonly #openHolds = new Set<string>();

  constructor(database: Database, options: BillingOptions) {
    this.#database = database;
    this.#options = options;
    this.#batcher = new Batcher({
      ...options,
      maxBatch: MAX_BATCH,
      weight: { of: charactersOf, max: MAX_BATCH_CHARACTERS },
      execute: (items) => this.#bill(items),
    });
  }

  get depth(): number {
    return this.#batcher.depth;
  }

  /** Whether this process may still have to end the hold. Any other hold of this server is abandoned. */
  isOpen(holdId: string): boolean {
    return this.#openHolds.has(holdId);
  }

  async hold(hold: HoldRequest): Promise<HoldOutcome> {
    const { holdId } = hold;
    const lane = laneOfId(hold.accountId);
    this.#openHolds.add(holdId);
    try {
      const result = (await this.#batcher.submit(lane, { kind: "hold", lane, hold })) as HoldOutcome;
      if (result.outcome !== "held") this.#openHolds.delete(holdId);
      return result;
    } catch (error) {
      // After any other error the hold may exist, so it stays open until it is ended.
      if (error instanceof DomainError && error.reason === "overloaded") this.#openHolds.delete(holdId);
      throw error;
    }
  }

  async end(end: EndRequest): Promise<EndOutcome> {
    const lane = laneOfId(end.accountId);
    const result = (await this.#batcher.submit(lane, { kind: "end", lane, end })) as EndOutcome;
    const outcome = result.outcome === "gone" ? await this.#earlierOutcome(end) : result;
    this.#openHolds.delete(end.holdId);
    return outcome;
  }

  /** The ledger row of a generation. */
  async findEntry(accountId: string, generationId: string): Promise<EntryRow | undefined> {
    const id = entryIdOf(generationId);
    const month = monthOfId(id);
    const [row] = await this.#database.call<EntryRow>("get_entry", laneOfId(accountId), accountId, id, month);
    return row;
  }

  /** An earlier attempt may have settled the hold although its result was lost. */
  async #earlierOutcome({ accountId, holdId }: EndRequest): Promise<EndOutcome> {
    const entry = await this.findEntry(accountId, holdId);
    if (!entry) return { outcome: "gone" };
    return {
      outcome: "settled",
      balanceMicros: entry.balance_after_micros,
      chargedMicros: -entry.amount_micros,
    };
  }

  /**
   * One invalid item must not fail the others: the batch is split until the invalid item is alone. Each part
   * is a statement of its own, so its error applies only to its own items.
   */
  async #bill(items: readonly Item[]): Promise<readonly (Result | DomainError)[]> {
    try {
      return await this.#send(items);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (items.length === 1 || !isInvalidData(error)) return items.map(() => error);
      const half = Math.ceil(items.length / 2);
      return [...(await this.#bill(items.slice(0, half))), ...(await this.#bill(items.slice(half)))];
    }
  }

  async #send(items: readonly Item[]): Promise<readonly Result[]> {
    const { serverId, clock } = this.#options;
    const lanes = [...new Set(items.map(({ lane }) => lane))];
    const ends = placesOf(items, "end");
    const holds = placesOf(items, "hold");
    const parameters = [
      `{${lanes.join(",")}}`,
      entryItem.arrayOf(ends.map((place) => endRow(items[place] as EndItem))),
      holdItem.arrayOf(holds.map((place) => holdRow(items[place] as HoldItem))),
    ];
    const call = () =>
      this.#database.call<BillRow>("bill", serverId, clock.after(START_WITHIN_MS), ...parameters);
    let rows = await call();
    if (rows[0]?.kind === "late") {
      // Either the statement was delayed or the database's clock has changed; with a changed clock, the retry
      // succeeds.
      clock.set(rows[0].clock);
      rows = await call();
      if (rows[0]?.kind === "late") throw new DomainError("unavailable");
    }
    const results = new Array<Result>(items.length);
    for (const row of rows) {
      const place = (row.kind === "end" ? ends : holds)[row.n - 1];
      if (place === undefined) throw new Error(`the result of bill has a row ${row.kind} ${row.n}`);
      results[place] = row.kind === "end" ? endOutcome(row) : holdOutcome(row);
    }
    return results;
  }
}

type EndItem = Extract<Item, { kind: "end" }>;
type HoldItem = Extract<Item, { kind: "hold" }>;

type BillRow = {
  readonly kind: "end" | "hold" | "late";
  readonly n: number;
  readonly outcome: string;
  readonly balance_micros: bigint;
  readonly held_micros: bigint;
  readonly amount_micros: bigint | null;
  readonly answer: string;
  readonly clock: Date;
};

function charactersOf(item: Item): number {
  return item.kind === "end" ? (item.end.charge?.answer?.length ?? 0) : 0;
}

function placesOf(items: readonly Item[], kind: Item["kind"]): number[] {
  const places: number[] = [];
  items.forEach((item, place) => {
    if (item.kind === kind) places.push(place);
  });
  return places;
}

function endRow({ lane, end: { holdId, accountId, charge } }: EndItem) {
  const hold = { lane, account_id: accountId, hold_id: holdId };
  if (!charge) return hold;
  const id = entryIdOf(holdId);
  return {
    ...hold,
    id,
    month: monthOfId(id),
    kind: "generation",
    amount: -charge.amountMicros,
    reason: charge.reason,
    request_id: charge.requestId,
    key_id: charge.keyId,
    model: charge.model,
    input_tokens: charge.inputTokens,
    output_tokens: charge.outputTokens,
    input_price: charge.inputPrice,
    output_price: charge.outputPrice,
    answer: charge.answer,
  };
}

function holdRow({ lane, hold }: HoldItem) {
  return {
    lane,
    account_id: hold.accountId,
    hold_id: hold.holdId,
    key_id: hold.keyId,
    amount: hold.amountMicros,
    seconds: hold.seconds,
    idempotency_key: hold.idempotency?.key,
    digest: hold.idempotency?.digest,
  };
}

function endOutcome(row: BillRow): EndOutcome {
  if (row.outcome === "gone") return { outcome: "gone" };
  if (row.amount_micros === null) return { outcome: "released" };
  return { outcome: "settled", balanceMicros: row.balance_micros, chargedMicros: -row.amount_micros };
}

function holdOutcome(row: BillRow): HoldOutcome {
  if (row.outcome === "answered") return { outcome: "answered", answer: row.answer };
  if (row.outcome === "insufficient") {
    return { outcome: "insufficient", balanceMicros: row.balance_micros, heldMicros: row.held_micros };
  }
  return { outcome: row.outcome as "held" | "revoked" | "running" | "reused" };
}

/** SQLSTATE classes of errors that come from a value or a broken rule, not from the state of the database. */
function isInvalidData(error: DomainError): boolean {
  const { code } = (error.cause ?? {}) as { code?: unknown };
  return typeof code === "string" && /^(22|23|P0)/.test(code);
}
