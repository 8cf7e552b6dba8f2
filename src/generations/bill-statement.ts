import * as sql from "../../gen/sql/calls.ts";
import { entryItem, holdItem } from "../database/driver/batcher.ts";
import type { FunctionCaller } from "../database/driver/cells.ts";
import type { DatabaseClock } from "../database/driver/database-clock.ts";
import { DomainError } from "../domain/errors.ts";
import { entryIdOf, monthOfId } from "../domain/ids.ts";
import { assertInvariant, InvariantViolation } from "../domain/invariant.ts";
import { type Lane, laneOfId } from "../domain/lane.ts";
import type { LimitMetric, LimitWindow } from "../domain/limit.ts";
import type { Micros } from "../domain/money.ts";
import { costOf, type Prices, tierOf, type Usage } from "../domain/price.ts";
import { toScopeBits } from "../domain/scope.ts";
import type { AdmittedKey } from "../keys/admit.ts";

/** Reserves the maximum cost of a generation. */
export type HoldRequest = {
  readonly generationId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly amountMicros: Micros;
  /** The maximum of input and output. */
  readonly tokens: number;
  readonly model: string;
  readonly user: string;
  /** After this time any server may release the hold. */
  readonly seconds: number;
  /** The call as it was admitted. If anything of it has changed, nothing is held. */
  readonly admitted: Pick<AdmittedKey, "fingerprint" | "scopes" | "allowedCidrs" | "priceListVersion">;
  readonly idempotency: { readonly key: string; readonly digest: string } | undefined;
};

export type HoldOutcome =
  | { readonly outcome: "held"; readonly minuteLimits?: readonly MinuteLimit[] }
  | { readonly outcome: "outdated" | "running" | "reused" | "answered" }
  | OwingHold
  | ShortHold;

/** A hold of an account that owes something for reversed payments. */
export type OwingHold = Funds & { readonly outcome: "owing"; readonly owedMicros: Micros };

/** A hold that does not fit the balance or a limit. */
export type ShortHold = Funds & {
  /** What is left of the limits; undefined if none applies. */
  readonly costRoom: Micros | undefined;
  readonly tokenRoom: bigint | undefined;
} & (
    | {
        readonly outcome: "insufficient";
        /** A refusal while less is free starts an automatic top-up; undefined if none can start. */
        readonly autoTopUpBelowMicros: Micros | undefined;
      }
    | { readonly outcome: "limited"; readonly limit: RefusingLimit }
  );

export type Funds = { readonly balanceMicros: Micros; readonly heldMicros: Micros };

/** What is left of a limit of the current minute after the hold. */
export type MinuteLimit = {
  readonly metric: LimitMetric;
  readonly amount: bigint;
  readonly remaining: bigint;
  readonly secondsLeft: number;
};

/** Of the limits that refuse a hold, the one with the longest wait. */
export type RefusingLimit = {
  readonly id: string;
  readonly ownerId: string;
  readonly metric: LimitMetric;
  readonly window: LimitWindow;
  readonly amount: bigint;
  readonly model: string;
  readonly per: string;
  readonly spent: bigint;
  readonly held: bigint;
  readonly needed: bigint;
  /** The end of the window and the time until then; undefined if it does not end. */
  readonly reset: { readonly at: Date; readonly seconds: number } | undefined;
};

/** Ends a hold: with a charge, or without one. */
export type EndRequest = {
  readonly generationId: string;
  readonly accountId: string;
  readonly charge: Charge | undefined;
};

export type Charge = {
  readonly amountMicros: Micros;
  readonly reason: string;
  readonly requestId: string;
  readonly traceId: string;
  readonly user: string;
  readonly keyId: string;
  readonly model: string;
  readonly usage: Usage;
  readonly prices: Prices;
  readonly priceVersion: number;
  /** The version of the account's own prices; 0 if none apply. */
  readonly priceListVersion: number;
  /** The upstream that replied; empty if unknown. */
  readonly upstream: string;
  /** The cost there; undefined if the upstream has none. */
  readonly upstreamCostMicros: Micros | undefined;
  /** The response for a later call with the same idempotency key. */
  readonly answer: string | undefined;
};

export type EndOutcome =
  | { readonly outcome: "settled"; readonly balanceMicros: Micros; readonly chargedMicros: Micros }
  /** "released": ended now, without a charge. "missing": released earlier, or never placed. */
  | { readonly outcome: "released" | "missing" };

export type BillItem =
  | { readonly kind: "hold"; readonly lane: Lane; readonly hold: HoldRequest }
  | { readonly kind: "end"; readonly lane: Lane; readonly end: EndRequest };

export type BillResult = HoldOutcome | EndOutcome;

/** A row about a hold, or about an ending with a charge. Its amount depends on the kind and the outcome: see item_result. */
export type BillRow = sql.ItemResult & { balance_micros: bigint; held_micros: bigint };

type BillOptions = {
  readonly serverId: string;
  readonly clock: DatabaseClock;
};

/** Latest start of a statement. After that the server may have timed out waiting for it. */
const START_WITHIN_MS = 5_000;

/** One statement for all items: one result per item, or the violated invariant of that item. */
export async function bill(
  cell: FunctionCaller,
  { serverId, clock }: BillOptions,
  items: readonly BillItem[],
): Promise<readonly (BillResult | InvariantViolation)[]> {
  assertNoDuplicates(items);
  const lanes = [...new Set(items.map(({ lane }) => lane))];
  const ends = items.filter((item) => item.kind === "end");
  const holds = items.filter((item) => item.kind === "hold");
  const batch = { serverId, lanes: `{${lanes.join(",")}}`, ends: arrayOfEnds(ends), holds: arrayOfHolds(holds) };
  const call = () => sql.bill(cell, { ...batch, notAfter: clock.after(START_WITHIN_MS) });
  const sentAt = clock.now();
  let rows = await call();
  if (rows[0]?.clock) {
    // Either the statement was delayed or the database's clock has changed; with a changed clock, the retry
    // succeeds.
    clock.set(rows[0].clock, sentAt);
    rows = await call();
    if (rows[0]?.kind === "late") throw new DomainError("unavailable");
  }
  const results = new Map<BillItem, BillResult | InvariantViolation>();
  for (const row of rows) {
    const item = (row.kind === "end" ? ends : holds)[row.n - 1];
    assertInvariant(item !== undefined && !results.has(item), "a result belongs to one item of the batch", {
      kind: row.kind,
      n: row.n,
      ends: ends.length,
      holds: holds.length,
    });
    results.set(
      item,
      resultOrViolation(() => (item.kind === "end" ? endOutcome(item, row as BillRow) : holdOutcome(item, row as BillRow))),
    );
  }
  return items.map((item) => {
    const result = results.get(item);
    assertInvariant(result !== undefined, "every item of a batch has a result", {
      kind: item.kind,
      lane: item.lane,
      items: items.length,
      rows: rows.length,
    });
    return result;
  });
}

/** A violation of one item must not fail the others: the database has executed them too. */
function resultOrViolation(read: () => BillResult): BillResult | InvariantViolation {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvariantViolation) return error;
    throw error;
  }
}

type EndItem = Extract<BillItem, { kind: "end" }>;
type HoldItem = Extract<BillItem, { kind: "hold" }>;

/** The parameter p_ends of vx.bill. */
export function arrayOfEnds(items: readonly EndItem[]): string {
  return entryItem.arrayOf(items.map(endRow));
}

/** The parameter p_holds of vx.bill. */
export function arrayOfHolds(items: readonly HoldItem[]): string {
  return holdItem.arrayOf(items.map(holdRow));
}

function endRow({ lane, end: { generationId, accountId, charge } }: EndItem) {
  const hold = { lane, account_id: accountId, generation_id: generationId };
  if (!charge) return hold;
  const id = entryIdOf(generationId);
  const { usage } = charge;
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
    price_version: charge.priceVersion,
    input: usage.input,
    cached_input: usage.cachedInput,
    cache_write: usage.cacheWrite,
    output: usage.output,
    reasoning: usage.reasoning,
    images: usage.images,
    image_tokens: usage.imageTokens,
    user_id: charge.user,
    trace_id: charge.traceId,
    answer: charge.answer,
    cache_write_1h: usage.cacheWrite1h,
    price_tier: tierOf(charge.prices, usage),
    price_list_version: charge.priceListVersion,
    upstream: charge.upstream,
    upstream_cost: charge.upstreamCostMicros,
  };
}

function holdRow({ lane, hold }: HoldItem) {
  return {
    lane,
    account_id: hold.accountId,
    generation_id: hold.generationId,
    key_id: hold.keyId,
    amount: hold.amountMicros,
    seconds: hold.seconds,
    idempotency_key: hold.idempotency?.key,
    digest: hold.idempotency?.digest,
    model: hold.model,
    user_id: hold.user,
    tokens: hold.tokens,
    fingerprint: { hex: hold.admitted.fingerprint },
    scopes: toScopeBits(hold.admitted.scopes),
    cidrs: hold.admitted.allowedCidrs,
    price_list_version: hold.admitted.priceListVersion,
  };
}

function endOutcome({ end }: EndItem, row: BillRow): EndOutcome {
  assertEndRow(end, row);
  if (row.outcome === "missing") return { outcome: "missing" };
  if (row.amount_micros === null) return { outcome: "released" };
  return { outcome: "settled", balanceMicros: row.balance_micros, chargedMicros: -row.amount_micros };
}

function holdOutcome({ hold }: Pick<HoldItem, "hold">, row: BillRow): HoldOutcome {
  assertHoldRow(hold, row);
  const outcome = row.outcome as HoldOutcome["outcome"];
  switch (outcome) {
    case "held":
    case "insufficient":
    case "limited":
      return withLimits(outcome, row);
    case "owing": {
      const { balance_micros: balanceMicros, held_micros: heldMicros, amount_micros: owedMicros } = row;
      assertInvariant(owedMicros !== null && owedMicros > 0n, "an account that owes something owes an amount", {
        hold: hold.generationId,
        owedMicros: owedMicros ?? 0n,
      });
      return { outcome, balanceMicros, heldMicros, owedMicros };
    }
    default:
      return { outcome };
  }
}

type LimitJson = {
  readonly refusal:
    | (Record<"id" | "owner_id" | "amount" | "model" | "per" | "spent" | "held" | "needed", string> & {
        readonly metric: LimitMetric;
        readonly window: LimitWindow;
        readonly resets_at: number | null;
        readonly seconds_left: number | null;
      })
    | null;
  readonly cost_room: string | null;
  readonly token_room: string | null;
  readonly minutes: readonly { metric: LimitMetric; amount: string; remaining: string; seconds_left: number }[] | null;
};

function withLimits(outcome: "held" | ShortHold["outcome"], row: BillRow): HoldOutcome {
  const limits = row.limits === null ? undefined : (JSON.parse(row.limits) as LimitJson);
  if (outcome === "held") {
    return limits?.minutes ? { outcome, minuteLimits: limits.minutes.map(minuteLimitOf) } : { outcome };
  }
  const short = {
    balanceMicros: row.balance_micros,
    heldMicros: row.held_micros,
    costRoom: bigintOf(limits?.cost_room),
    tokenRoom: bigintOf(limits?.token_room),
  };
  if (outcome === "insufficient") return { outcome, ...short, autoTopUpBelowMicros: row.amount_micros ?? undefined };
  const refusal = limits?.refusal ?? undefined;
  assertInvariant(refusal !== undefined, "a hold that is refused by a limit names it", { outcome });
  return { outcome, ...short, limit: refusingLimitOf(refusal) };
}

function minuteLimitOf(limit: NonNullable<LimitJson["minutes"]>[number]): MinuteLimit {
  return {
    metric: limit.metric,
    amount: BigInt(limit.amount),
    remaining: BigInt(limit.remaining),
    secondsLeft: limit.seconds_left,
  };
}

function refusingLimitOf(limit: NonNullable<LimitJson["refusal"]>): RefusingLimit {
  const { id, owner_id: ownerId, metric, window, model, per, resets_at: at, seconds_left: seconds } = limit;
  return {
    id,
    ownerId,
    metric,
    window,
    model,
    per,
    amount: BigInt(limit.amount),
    spent: BigInt(limit.spent),
    held: BigInt(limit.held),
    needed: BigInt(limit.needed),
    reset: at === null || seconds === null ? undefined : { at: new Date(at * 1000), seconds },
  };
}

function bigintOf(text: string | null | undefined): bigint | undefined {
  return text === null || text === undefined ? undefined : BigInt(text);
}

/** What would happen to a hold. Nothing is held. */
export async function quoteHold(cell: FunctionCaller, hold: HoldRequest): Promise<HoldOutcome> {
  const holds = arrayOfHolds([{ kind: "hold", lane: laneOfId(hold.accountId), hold }]);
  const [row] = await sql.quoteHold(cell, { holds });
  assertInvariant(row !== undefined, "a hold has a quote", { account: hold.accountId });
  return holdOutcome({ hold }, row as BillRow);
}

/** Assertions on the input and the output of vx.bill. */

/** A hold of this process that has not ended. */
export type OpenHold = {
  readonly amountMicros: Micros;
  /** Set with the first attempt to charge. */
  charge: Charge | undefined;
};

const MAX_INT64 = 2n ** 63n - 1n;

export function assertHold(hold: HoldRequest, open: OpenHold | undefined): void {
  const { generationId, accountId, keyId, amountMicros } = hold;
  const facts = { hold: generationId, account: accountId, key: keyId, amountMicros };
  assertInvariant(isAmount(amountMicros), "the amount of a hold is an int64 of at least 0", facts);
  assertInvariant(areInOneLane(accountId, generationId, keyId), "hold and key are in the account's lane", facts);
  assertInvariant(open === undefined, "a hold is placed once", facts);
}

/** A retry sends the same charge again. A hold that this process does not track can only be released. */
export function assertEnd(end: EndRequest, open: OpenHold | undefined): void {
  const { generationId, accountId, charge } = end;
  assertInvariant(areInOneLane(accountId, generationId), "a hold is in the account's lane", {
    hold: generationId,
    account: accountId,
  });
  if (!charge) return;
  const { amountMicros, keyId, usage, prices, priceVersion } = charge;
  const facts = () => ({ hold: generationId, account: accountId, key: keyId, amountMicros, ...usage });
  assertInvariant(areInOneLane(accountId, keyId), "the key of a charge is in the account's lane", facts);
  assertInvariant(open !== undefined, "only an open hold is charged", facts);
  assertInvariant(open.charge === undefined || open.charge === charge, "a hold is charged once", facts);
  assertInvariant(
    isAmount(amountMicros) && amountMicros <= open.amountMicros,
    "a charge is at least 0 and at most its hold",
    () => ({ ...facts(), heldMicros: open.amountMicros }),
  );
  assertInvariant(priceVersion > 0, "the prices of a charge are registered", () => ({
    ...facts(),
    priceVersion,
  }));
  assertInvariant(
    Object.values(usage).every((count) => count >= 0) && amountMicros === costOf(prices, usage),
    "a charge is the cost of its usage",
    () => ({ ...facts(), ...prices, tiers: prices.tiers.length }),
  );
}

/** Two releases of one hold do no harm: the second one has no effect. */
function assertNoDuplicates(items: readonly BillItem[]): void {
  const ids = items.flatMap((item) => {
    if (item.kind === "hold") return [`place ${item.hold.generationId}`];
    return item.end.charge ? [`charge ${item.end.generationId}`] : [];
  });
  assertInvariant(new Set(ids).size === ids.length, "a batch places and charges a hold once", {
    items: items.length,
    placedAndCharged: ids.length,
  });
}

function assertHoldRow(hold: HoldRequest, row: BillRow): void {
  const { outcome, balance_micros: balanceMicros, held_micros: heldMicros } = row;
  const { generationId, amountMicros } = hold;
  const facts = { hold: generationId, outcome, balanceMicros, heldMicros, amountMicros };
  assertInvariant(isLegalHoldOutcome(hold, row), "a hold has an outcome that its request allows", facts);
  assertInvariant(0n <= heldMicros && heldMicros <= balanceMicros, "an account holds at least 0 and at most its balance", facts);
  // The balance and the amount held are those before this hold.
  const fits = amountMicros <= balanceMicros - heldMicros;
  assertInvariant(outcome !== "held" || fits, "a hold that is placed fits the free balance", facts);
  assertInvariant(outcome !== "insufficient" || !fits, "a hold that fits is not insufficient", facts);
}

function assertEndRow(end: EndRequest, row: BillRow): void {
  const { outcome, amount_micros: amountMicros, balance_micros: balanceMicros } = row;
  const isCharged = amountMicros !== null;
  const facts = { hold: end.generationId, outcome, isCharged, mustCharge: end.charge !== undefined };
  assertInvariant(
    outcome === "missing" ? !isCharged : outcome === "posted" && isCharged === (end.charge !== undefined),
    "an ending has an outcome that its request allows",
    facts,
  );
  if (isCharged) assertCharged(end, -amountMicros, balanceMicros);
}

export function assertCharged(end: EndRequest, chargedMicros: Micros, balanceMicros: Micros): void {
  const amountMicros = end.charge?.amountMicros;
  const facts = { hold: end.generationId, amountMicros, chargedMicros, balanceMicros };
  assertInvariant(
    amountMicros === undefined || chargedMicros === amountMicros,
    "the database charges the requested amount",
    facts,
  );
  assertInvariant(balanceMicros >= 0n, "a charge leaves a balance of at least 0", facts);
}

function isLegalHoldOutcome({ idempotency }: HoldRequest, { outcome }: BillRow): boolean {
  switch (outcome) {
    case "held":
    case "insufficient":
    case "limited":
    case "owing":
    case "outdated":
      return true;
    case "running":
    case "reused":
    case "answered":
      return idempotency !== undefined;
    default:
      return false;
  }
}

function isAmount(micros: Micros): boolean {
  return 0n <= micros && micros <= MAX_INT64;
}

function areInOneLane(accountId: string, ...ids: readonly string[]): boolean {
  const lane = laneOfId(accountId);
  return ids.every((id) => laneOfId(id) === lane);
}
