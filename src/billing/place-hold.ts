import { DomainError } from "../domain/errors.ts";
import { assertInvariant, InvariantViolation } from "../domain/invariant.ts";
import type { Model } from "../domain/model.ts";
import { maxCostOf } from "../domain/price.ts";
import type { HoldOutcome, HoldRequest } from "../store/bill-item.ts";
import type { Billing } from "../store/billing.ts";
import type { Caller } from "./caller.ts";
import { fitHold } from "./fit-hold.ts";
import type { GenerationRequest } from "./generation-request.ts";
import { extentOf, type Size } from "./generation-size.ts";
import { insufficientBalance } from "./refusals.ts";
import type { RunningGenerations } from "./running-generations.ts";
import type { Settler } from "./settler.ts";
import type { Tokens } from "./token-counts.ts";

export const MAX_CALL_MS = 600_000;
/** A hold outlives the longest call plus its settlement retries. */
const HOLD_SECONDS = 720;

export type HoldParts = {
  readonly billing: Billing;
  readonly settler: Settler;
  readonly running: RunningGenerations;
  readonly tokens: Tokens;
};

/** A generation whose hold is not placed yet. */
export type PendingGeneration = {
  readonly id: string;
  readonly caller: Caller;
  readonly request: GenerationRequest;
  readonly model: Model;
  readonly idempotency: HoldRequest["idempotency"];
};

/** The size that the hold covers. There is no hold if an earlier call with the same idempotency key was answered. */
type Placed = { readonly kind: "held"; readonly size: Size } | { readonly kind: "answered" };

export function placeHold(parts: HoldParts, pending: PendingGeneration): Promise<Placed> {
  const { request, model } = pending;
  const { key, signal } = pending.caller;
  const { tokens } = parts;
  const placing = fitHold({ model, request, payer: key, tokens, signal }, (size) =>
    tryHold(parts, pending, size),
  );
  return placing.then(placedOf);
}

function tryHold(parts: HoldParts, pending: PendingGeneration, size: Size): Promise<HoldOutcome> {
  const { key } = pending.caller;
  const { amountMicros } = size;
  const extent = extentOf(size);
  assertInvariant(
    amountMicros === maxCostOf(pending.model.prices, extent),
    "the amount of a hold is the maximum cost of its size",
    () => ({ generation: pending.id, amountMicros, ...extent }),
  );
  const hold: HoldRequest = {
    holdId: pending.id,
    accountId: key.accountId,
    keyId: key.keyId,
    amountMicros,
    seconds: HOLD_SECONDS,
    idempotency: pending.idempotency,
  };
  return parts.billing.hold(hold).catch((error: unknown) => {
    // The statement may have placed the hold although its reply was lost.
    if (mayBePlaced(error)) parts.running.waitFor(parts.settler.abandon(hold));
    throw error;
  });
}

function placedOf({ held, size }: { readonly held: HoldOutcome; readonly size: Size }): Placed {
  switch (held.outcome) {
    case "held":
      return { kind: "held", size };
    case "answered":
      return { kind: "answered" };
    case "insufficient":
      throw insufficientBalance(held.balanceMicros, held.heldMicros, size.amountMicros);
    case "revoked":
      throw new DomainError("revoked_api_key");
    case "running":
      throw new DomainError("idempotency_in_progress", { retryAfterSeconds: 1 });
    case "reused":
      throw new DomainError("idempotency_key_reused");
  }
}

/** After a violated invariant nothing more is done with the hold: the process ends, and then it is released. */
function mayBePlaced(error: unknown): boolean {
  if (error instanceof InvariantViolation) return false;
  return !(error instanceof DomainError && error.reason === "overloaded");
}
