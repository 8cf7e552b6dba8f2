import { assertInvariant } from "../domain/invariant.ts";
import { laneOfId } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import { costOf } from "../domain/price.ts";
import type { BillItem, BillRow, Charge, EndRequest, HoldRequest } from "./bill-item.ts";

/** Assertions on the input and the output of vx.bill. */

/** A hold of this process that has not ended. */
export type OpenHold = {
  readonly amountMicros: Micros;
  /** Set with the first attempt to charge. */
  charge: Charge | undefined;
};

const MAX_INT64 = 2n ** 63n - 1n;

export function assertHold(hold: HoldRequest, open: OpenHold | undefined): void {
  const { holdId, accountId, keyId, amountMicros } = hold;
  const facts = { hold: holdId, account: accountId, key: keyId, amountMicros };
  assertInvariant(isAmount(amountMicros), "the amount of a hold is an int64 of at least 0", facts);
  assertInvariant(areInOneLane(accountId, holdId, keyId), "hold and key are in the account's lane", facts);
  assertInvariant(open === undefined, "a hold is placed once", facts);
}

/** A retry sends the same charge again. A hold that this process does not track can only be released. */
export function assertEnd(end: EndRequest, open: OpenHold | undefined): void {
  const { holdId, accountId, charge } = end;
  assertInvariant(areInOneLane(accountId, holdId), "a hold is in the account's lane", {
    hold: holdId,
    account: accountId,
  });
  if (!charge) return;
  const { amountMicros, keyId, usage, prices, priceVersion } = charge;
  const facts = () => ({ hold: holdId, account: accountId, key: keyId, amountMicros, ...usage });
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
    () => ({ ...facts(), ...prices }),
  );
}

/** Two releases of one hold do no harm: the second one has no effect. */
export function assertNoDuplicates(items: readonly BillItem[]): void {
  const ids = items.flatMap((item) => {
    if (item.kind === "hold") return [`place ${item.hold.holdId}`];
    return item.end.charge ? [`charge ${item.end.holdId}`] : [];
  });
  assertInvariant(new Set(ids).size === ids.length, "a batch places and charges a hold once", {
    items: items.length,
    placedAndCharged: ids.length,
  });
}

export function assertHoldRow(hold: HoldRequest, row: BillRow): void {
  const { outcome, balance_micros: balanceMicros, held_micros: heldMicros } = row;
  const { holdId, amountMicros } = hold;
  const facts = { hold: holdId, outcome, balanceMicros, heldMicros, amountMicros };
  assertInvariant(isLegalHoldOutcome(hold, row), "a hold has an outcome that its request allows", facts);
  assertInvariant(
    0n <= heldMicros && heldMicros <= balanceMicros,
    "an account holds at least 0 and at most its balance",
    facts,
  );
  // The balance and the amount held are those before this hold.
  const fits = amountMicros <= balanceMicros - heldMicros;
  assertInvariant(outcome !== "held" || fits, "a hold that is placed fits the free balance", facts);
  assertInvariant(outcome !== "insufficient" || !fits, "a hold that fits is not insufficient", facts);
}

export function assertEndRow(end: EndRequest, row: BillRow): void {
  const { outcome, amount_micros: amountMicros, balance_micros: balanceMicros } = row;
  const isCharged = amountMicros !== null;
  const facts = { hold: end.holdId, outcome, isCharged, mustCharge: end.charge !== undefined };
  assertInvariant(
    outcome === "missing" ? !isCharged : outcome === "posted" && isCharged === (end.charge !== undefined),
    "an ending has an outcome that its request allows",
    facts,
  );
  if (isCharged) assertCharged(end, -amountMicros, balanceMicros);
}

export function assertCharged(end: EndRequest, chargedMicros: Micros, balanceMicros: Micros): void {
  const amountMicros = end.charge?.amountMicros;
  const facts = { hold: end.holdId, amountMicros, chargedMicros, balanceMicros };
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
    case "revoked":
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
