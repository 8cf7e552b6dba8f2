import { type Lane, laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { numberArray, textArray } from "./array-text.ts";
import { Batcher } from "./batcher.ts";
import type { Database } from "./database.ts";
import type { EntryRow } from "./ledger.ts";

/** Reserves the most a generation can cost. */
export type HoldRequest = {
  readonly holdId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly amountMicros: Micros;
  /** After this time anyone may give the hold back. */
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
  /** What the next call with the same idempotency key is answered. */
  readonly answer: string | undefined;
};

export type EndOutcome =
  | { readonly outcome: "settled"; readonly balanceMicros: Micros; readonly chargedMicros: Micros }
  /** Given back before: nothing is charged. */
  | { readonly outcome: "gone" };

/** With its lane, which is a hash of the account and so is made once. */
type Queued<Request> = Request & { readonly lane: Lane };

type Item =
  | { readonly kind: "hold"; readonly hold: Queued<HoldRequest> }
  | { readonly kind: "end"; readonly end: Queued<EndRequest> };

type Result = HoldOutcome | EndOutcome;

type BillingOptions = {
  readonly serverId: string;
  readonly pipelines: number;
  readonly maxWaiting: number;
  readonly onBatch?: (size: number) => void;
};

/** A batch stays a statement of some tens of milliseconds. */
const MAX_BATCH = 512;
/** Answers can be long. */
const MAX_BATCH_CHARACTERS = 2_097_152;

/** Holds and settlements, batched together: one round trip and one wait for the disk for all that arrived meanwhile. */
export class Billing {
  readonly #database: Database;
  readonly #batcher: Batcher<Item, Result>;

  constructor(database: Database, options: BillingOptions) {
    this.#database = database;
    this.#batcher = new Batcher({
      ...options,
      maxBatch: MAX_BATCH,
      weight: { of: charactersOf, max: MAX_BATCH_CHARACTERS },
      run: (items) => run(database, options.serverId, items),
    });
  }

  get depth(): number {
    return this.#batcher.depth;
  }

  hold(hold: HoldRequest): Promise<HoldOutcome> {
    const lane = laneOfId(hold.accountId);
    return this.#batcher.add(lane, { kind: "hold", hold: { ...hold, lane } }) as Promise<HoldOutcome>;
  }

  async end(end: EndRequest): Promise<EndOutcome> {
    const lane = laneOfId(end.accountId);
    const ended = (await this.#batcher.add(lane, { kind: "end", end: { ...end, lane } })) as EndOutcome;
    if (ended.outcome === "settled") return ended;
    // Perhaps an earlier try was settled, and only its answer was lost.
    const entry = await this.findEntry(end.accountId, end.holdId);
    if (!entry) return ended;
    return {
      outcome: "settled",
      balanceMicros: entry.balance_after_micros,
      chargedMicros: -entry.amount_micros,
    };
  }

  /** The ledger row of a generation. */
  async findEntry(accountId: string, generationId: string): Promise<EntryRow | undefined> {
    const entryId = generationId.replace(/^gen_/, "led_");
    const [row] = await this.#database.call<EntryRow>("get_entry", laneOfId(accountId), accountId, entryId);
    return row;
  }
}

function charactersOf(item: Item): number {
  return item.kind === "end" ? (item.end.charge?.answer?.length ?? 0) : 0;
}

async function run(database: Database, serverId: string, items: readonly Item[]): Promise<Result[]> {
  const [item] = items;
  if (!item || items.length > 1) return await bill(database, serverId, items);
  if (item.kind === "end") return [await endAlone(database, item.end)];
  return item.hold.idempotency
    ? await bill(database, serverId, items)
    : [await holdAlone(database, serverId, item.hold)];
}

type HoldRow = {
  readonly outcome: string;
  readonly balance_micros: bigint;
  readonly held_micros: bigint;
};

type EndRow = {
  readonly outcome: string;
  readonly balance_micros: bigint;
  readonly charged_micros: bigint;
};

type BillRow = HoldRow & EndRow & { readonly ends: boolean; readonly n: number; readonly answer: string };

async function bill(database: Database, serverId: string, items: readonly Item[]): Promise<Result[]> {
  const ends: Queued<EndRequest>[] = [];
  const holds: Queued<HoldRequest>[] = [];
  const endPlaces: number[] = [];
  const holdPlaces: number[] = [];
  items.forEach((item, place) => {
    if (item.kind === "end") {
      ends.push(item.end);
      endPlaces.push(place);
    } else {
      holds.push(item.hold);
      holdPlaces.push(place);
    }
  });
  const rows = await database.call<BillRow>("bill", serverId, ...endArrays(ends), ...holdArrays(holds));
  const results = new Array<Result>(items.length);
  for (const row of rows) {
    const place = (row.ends ? endPlaces : holdPlaces)[row.n - 1];
    if (place !== undefined) results[place] = resultOf(row);
  }
  return results;
}

function endArrays(ends: readonly Queued<EndRequest>[]): string[] {
  const charges = ends.map(({ charge }) => charge);
  return [
    numberArray(ends.map(({ lane }) => lane)),
    textArray(ends.map(({ accountId }) => accountId)),
    textArray(ends.map(({ holdId }) => holdId)),
    numberArray(charges.map((charge) => charge?.amountMicros)),
    textArray(charges.map((charge) => charge?.reason)),
    textArray(charges.map((charge) => charge?.requestId)),
    textArray(charges.map((charge) => charge?.keyId)),
    textArray(charges.map((charge) => charge?.model)),
    numberArray(charges.map((charge) => charge?.inputTokens)),
    numberArray(charges.map((charge) => charge?.outputTokens)),
    numberArray(charges.map((charge) => charge?.inputPrice)),
    numberArray(charges.map((charge) => charge?.outputPrice)),
    textArray(charges.map((charge) => charge?.answer)),
  ];
}

function holdArrays(holds: readonly Queued<HoldRequest>[]): string[] {
  return [
    numberArray(holds.map(({ lane }) => lane)),
    textArray(holds.map(({ accountId }) => accountId)),
    textArray(holds.map(({ holdId }) => holdId)),
    textArray(holds.map(({ keyId }) => keyId)),
    numberArray(holds.map(({ amountMicros }) => amountMicros)),
    numberArray(holds.map(({ seconds }) => seconds)),
    textArray(holds.map(({ idempotency }) => idempotency?.key)),
    textArray(holds.map(({ idempotency }) => idempotency?.digest)),
  ];
}

async function holdAlone(
  database: Database,
  serverId: string,
  hold: Queued<HoldRequest>,
): Promise<HoldOutcome> {
  const { lane, accountId, holdId, keyId, amountMicros, seconds } = hold;
  const [row] = await database.call<HoldRow>(
    "hold_alone",
    serverId,
    lane,
    accountId,
    holdId,
    keyId,
    amountMicros,
    seconds,
  );
  return holdOutcome(row as HoldRow);
}

async function endAlone(
  database: Database,
  { lane, accountId, holdId, charge }: Queued<EndRequest>,
): Promise<EndOutcome> {
  const [row] = await database.call<EndRow>(
    "end_alone",
    lane,
    accountId,
    holdId,
    charge?.amountMicros ?? null,
    charge?.reason ?? null,
    charge?.requestId ?? null,
    charge?.keyId ?? null,
    charge?.model ?? null,
    charge?.inputTokens ?? null,
    charge?.outputTokens ?? null,
    charge?.inputPrice ?? null,
    charge?.outputPrice ?? null,
    charge?.answer ?? null,
  );
  return endOutcome(row as EndRow);
}

function resultOf(row: BillRow): Result {
  if (row.ends) return endOutcome(row);
  return row.outcome === "answered" ? { outcome: "answered", answer: row.answer } : holdOutcome(row);
}

function endOutcome(row: EndRow): EndOutcome {
  if (row.outcome === "gone") return { outcome: "gone" };
  return { outcome: "settled", balanceMicros: row.balance_micros, chargedMicros: row.charged_micros };
}

function holdOutcome(row: HoldRow): HoldOutcome {
  if (row.outcome === "insufficient") {
    return { outcome: "insufficient", balanceMicros: row.balance_micros, heldMicros: row.held_micros };
  }
  return { outcome: row.outcome as "held" | "revoked" | "running" | "reused" };
}
