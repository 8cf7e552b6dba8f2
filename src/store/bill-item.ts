import type { Lane } from "../domain/lane.ts";
import type { Micros } from "../domain/money.ts";
import type { Prices } from "../domain/price.ts";
import type { Usage } from "../domain/usage.ts";

/** Reserves the maximum cost of a generation. */
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
  | { readonly outcome: "held" | "revoked" | "running" | "reused" | "answered" }
  | { readonly outcome: "insufficient"; readonly balanceMicros: Micros; readonly heldMicros: Micros };

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
  readonly traceId: string;
  readonly user: string;
  readonly keyId: string;
  readonly model: string;
  readonly usage: Usage;
  readonly prices: Prices;
  readonly priceVersion: number;
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

/** A row of the result of vx.bill. */
export type BillRow = {
  readonly kind: "end" | "hold" | "late";
  readonly n: number;
  readonly outcome: string;
  readonly balance_micros: bigint;
  readonly held_micros: bigint;
  readonly amount_micros: bigint | null;
  readonly clock: Date;
};
