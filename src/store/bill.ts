import { DomainError } from "../domain/errors.ts";
import { entryIdOf, monthOfId } from "../domain/ids.ts";
import { assertInvariant, InvariantViolation } from "../domain/invariant.ts";
import { entryItem, holdItem } from "./batch-items.ts";
import { assertEndRow, assertHoldRow, assertNoDuplicates } from "./bill-invariants.ts";
import type { BillItem, BillResult, BillRow, EndOutcome, HoldOutcome } from "./bill-item.ts";
import type { FunctionCaller } from "./driver/cells.ts";
import type { DatabaseClock } from "./driver/database-clock.ts";

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
  const parameters = [`{${lanes.join(",")}}`, arrayOfEnds(ends), arrayOfHolds(holds)];
  const call = () => cell.call<BillRow>("bill", serverId, clock.after(START_WITHIN_MS), ...parameters);
  const sentAt = clock.now();
  let rows = await call();
  if (rows[0]?.kind === "late") {
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
      resultOrViolation(() => (item.kind === "end" ? endOutcome(item, row) : holdOutcome(item, row))),
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

function endRow({ lane, end: { holdId, accountId, charge } }: EndItem) {
  const hold = { lane, account_id: accountId, hold_id: holdId };
  if (!charge) return hold;
  const id = entryIdOf(holdId);
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

function endOutcome({ end }: EndItem, row: BillRow): EndOutcome {
  assertEndRow(end, row);
  if (row.outcome === "missing") return { outcome: "missing" };
  if (row.amount_micros === null) return { outcome: "released" };
  return { outcome: "settled", balanceMicros: row.balance_micros, chargedMicros: -row.amount_micros };
}

function holdOutcome({ hold }: HoldItem, row: BillRow): HoldOutcome {
  assertHoldRow(hold, row);
  if (row.outcome === "insufficient") {
    return { outcome: "insufficient", balanceMicros: row.balance_micros, heldMicros: row.held_micros };
  }
  return { outcome: row.outcome as Exclude<HoldOutcome["outcome"], "insufficient"> };
}
